// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/bucket"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// OpenPart is Open for a location that may be a directory inside of a store: its part of the store is opened.
func OpenPart(location string, options ReadOptions) (*Store, error) {
	if absolute, err := filepath.Abs(location); err == nil && !bucket.IsURL(location) {
		location = absolute
	}
	root, inside := RootOf(location)
	if inside != "" {
		options.Inside = []string{inside}
	}
	return Open(root, options)
}

// RootOf returns the directory or URL of the store that a directory is in, or a prefix of a bucket, and its path below it with slashes,
// "" if it is none of a group, year, month, day or hour. Without the rest of the store, the files that a compacted file was made of would
// count beside it, and a directory would lack the compacted files that are beside it.
//
// The root above groups is one that a Writer has opened. In a bucket, where nothing shows that, a group is a root.
func RootOf(location string) (root, inside string) {
	if bucket.IsURL(location) {
		return rootOfURL(location)
	}
	root = location
	for range dateOf(filepath.ToSlash(location)) {
		root = filepath.Dir(root)
	}
	above := root
	for layout.IsGroupDir(filepath.Base(above)) && !layout.HasDirectoryID(above) {
		above = filepath.Dir(above)
	}
	if layout.HasDirectoryID(above) {
		root = above
	}
	relative, err := filepath.Rel(root, location)
	if inside = filepath.ToSlash(relative); err != nil || inside == "." || !hasFiles(root, inside) {
		return location, ""
	}
	return root, inside
}

// rootTimeout is how long rootOfURL waits for a bucket.
const rootTimeout = 10 * time.Second

// rootOfURL is RootOf for a URL. It asks the bucket if the name is that of a date: years and groups are in roots only.
func rootOfURL(location string) (root, inside string) {
	at, err := bucket.ParseURL(location)
	if err != nil {
		return location, "" // Open returns the error
	}
	date := dateOf(at.Prefix)
	if len(date) == 0 {
		return at.URL(), ""
	}
	ctx, stop := context.WithTimeout(context.Background(), rootTimeout)
	defer stop()
	var names []string
	if b, err := bucket.OpenOnce(at); err == nil {
		defer b.Close()
		names, _ = b.Directories(ctx, at.Directory()) // readers of the store report the error
	}
	if slices.ContainsFunc(names, func(name string) bool { return layout.IsChild(0, name) }) {
		return at.URL(), ""
	}
	inside = strings.Join(date, "/")
	at.Prefix = strings.TrimSuffix(strings.TrimSuffix(at.Prefix, inside), "/")
	return at.URL(), inside
}

// RootsOf is RootOf for each of several URLs. A group of a store that is one of them is inside of it, too.
func RootsOf(urls []string) (roots, insides []string) {
	for _, location := range urls {
		root, inside := RootOf(location)
		roots, insides = append(roots, root), append(insides, inside)
	}
	for i, root := range roots {
		at, err := bucket.ParseURL(root)
		for group := ""; err == nil && layout.IsGroupDir(path.Base(at.Prefix)); {
			group = path.Join(path.Base(at.Prefix), group)
			at.Prefix = strings.TrimSuffix(strings.TrimSuffix(at.Prefix, path.Base(at.Prefix)), "/")
			if slices.Contains(roots, at.URL()) {
				roots[i], insides[i] = at.URL(), path.Join(group, insides[i])
				group = ""
			}
		}
	}
	return roots, insides
}

// dateOf returns the year, month, day and hour that a path with slashes ends in, as far as it does.
func dateOf(name string) (date []string) {
	names := strings.Split(name, "/")
	for n := min(layout.HourDepth, len(names)); n > 0; n-- {
		if last := names[len(names)-n:]; layout.IsYear(last[0]) && !layout.EndOf(last).IsZero() {
			return last
		}
	}
	return nil
}

// part is a part of a store: a group and the groups in it, or the partitions of a group that start in a time range.
type part struct {
	group    string
	from, to time.Time // zero without a range
}

// leads reports whether a group has files of the part, or is above one that has.
func (p part) leads(group string) bool {
	return group == p.group || group != "" && isBelow(p.group, group) || p.to.IsZero() && isBelow(group, p.group)
}

type parts []part

func partsOf(inside []string) (all parts) {
	for _, name := range inside {
		group, date := layout.SplitPath(name)
		p := part{group: group}
		if len(date) > 0 {
			p.from, p.to = layout.StartOf(date), layout.EndOf(date)
		}
		all = append(all, p)
	}
	return all
}

func (ps parts) has(f *layout.File) bool {
	return len(ps) == 0 || slices.ContainsFunc(ps, func(p part) bool {
		if p.to.IsZero() {
			return isBelow(f.Group, p.group)
		}
		return f.Group == p.group && !f.Partition.Before(p.from) && f.Partition.Before(p.to)
	})
}

// narrow narrows what source.list lists to that which decides what the parts have: compacted files of a day say which files of its
// hours count.
func (ps parts) narrow(since time.Time, accepts func(string) bool, selects func(*layout.File) bool) (time.Time, func(string) bool, func(*layout.File) bool) {
	if len(ps) == 0 {
		return since, accepts, selects
	}
	first, last := ps[0].from, ps[0].to
	for _, p := range ps {
		if p.from.Before(first) {
			first = p.from
		}
		if p.to.IsZero() || !last.IsZero() && p.to.After(last) {
			last = p.to
		}
	}
	if first.After(since) {
		since = first
	}
	inParts := func(group string) bool {
		return accepts(group) && slices.ContainsFunc(ps, func(p part) bool { return p.leads(group) })
	}
	early := func(f *layout.File) bool { return (last.IsZero() || f.Partition.Before(last)) && selects(f) }
	return since, inParts, early
}

// isBelow reports whether a group is another one or in it.
func isBelow(group, other string) bool {
	return other == "" || group == other || strings.HasPrefix(group, other+"/")
}

// HasFiles reports whether a directory has a file that a Writer or Compactor wrote into it. It looks no further than to the first one.
func HasFiles(directory string) bool { return hasFiles(directory, "") }

// IsOwnDirectory reports whether a directory of this name, in that of a Store, is one of groups and partitions, or of files that do not count.
// Files of others may be beside it.
func IsOwnDirectory(name string) bool {
	return layout.IsChild(0, name) || slices.Contains([]string{layout.DamagedDir, layout.SamplesDir, layout.ProcessesDir}, name)
}

// IsPartition reports whether a directory, by its path below that of the store, is one of a year, month, day or hour, which has no files of
// others.
func IsPartition(inside string) bool {
	_, date := layout.SplitPath(inside)
	return len(date) > 0
}

// hasFiles reports whether a store has files in a directory inside of it; "" is all of it.
func hasFiles(root, inside string) (found bool) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var in parts
	if inside != "" {
		in = partsOf([]string{inside})
	}
	since, accepts, selects := in.narrow(time.Time{}, func(string) bool { return true }, func(f *layout.File) bool {
		if in.has(f) {
			found = true
			stop()
		}
		return false
	})
	_, _ = (&local{root: root}).list(ctx, since, accepts, selects, nil) // what cannot be listed is reported by Live
	return found
}
