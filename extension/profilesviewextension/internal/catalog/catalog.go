// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// maxAge is how old the list of files may be.
const maxAge = time.Second

// Catalog knows the files of a directory.
type Catalog struct {
	directory string
	maxMemory int64 // of all details

	mu     sync.Mutex
	listed time.Time
	files  map[string]*file // by path
	failed []error          // of the last listing
	memory int64            // of details
	clock  int64            // counts uses
}

// New returns the catalog of a directory, which may not exist yet. The details of its files take maxMemory
// bytes.
func New(directory string, maxMemory int64) *Catalog {
	return &Catalog{directory: directory, maxMemory: maxMemory, files: map[string]*file{}}
}

// Refresh lists the directory again, unless the last list is recent. Other methods use the last list, so that
// all parts of a page show the same.
func (c *Catalog) Refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.listed) < maxAge {
		return
	}
	found, failed := archive.Find([]string{c.directory})
	c.failed = slices.DeleteFunc(failed, func(err error) bool { return errors.Is(err, fs.ErrNotExist) })
	seen := make(map[string]*file, len(found))
	for _, f := range found {
		known := c.files[f.Path]
		switch {
		case known == nil:
			known = c.newFile(f)
		case known.Size == f.Size && known.Modified == f.Modified:
			known.Index = f.Index
		case known.continues(&f):
			known.File, known.grown = f, true
		default:
			known = newFile(f)
		}
		seen[f.Path] = known
	}
	for path, known := range c.files {
		if seen[path] != known {
			c.drop(known)
		}
	}
	c.files, c.listed = seen, time.Now()
}

// newFile returns a file that was not there before. If it has been closed and so renamed, it keeps the details.
// c.mu is held.
func (c *Catalog) newFile(found archive.File) *file {
	f := newFile(found)
	if before := c.files[found.Path+".partial"]; before != nil && before.continues(&found) && before.readEnd == found.Size {
		*f = *before
		f.File, f.partial, f.grown = found, false, false
		before.details = nil
	}
	return f
}

// drop forgets the details of a file. c.mu is held.
func (c *Catalog) drop(f *file) {
	if f.details != nil {
		c.memory -= f.details.size()
		f.details = nil
	}
}

// use loads the details of a file, and drops others if they take too much memory. It returns nil if the file
// is gone. c.mu is held.
func (c *Catalog) use(options *archive.Options, f *file) *details {
	c.clock++
	f.used = c.clock
	if f.details != nil && !f.grown {
		return f.details
	}
	if f.details != nil {
		c.memory -= f.details.size()
	}
	if gone := f.load(options); gone {
		f.details = nil
		delete(c.files, f.Path)
		return nil
	}
	c.memory += f.details.size()
	loaded := f.details
	if c.memory > c.maxMemory {
		c.evict()
	}
	return loaded
}

// evict drops the details that were used least, until a quarter of the memory is free. c.mu is held.
func (c *Catalog) evict() {
	var held []*file
	for _, f := range c.files {
		if f.details != nil {
			held = append(held, f)
		}
	}
	slices.SortFunc(held, func(a, b *file) int { return cmp.Compare(a.used, b.used) })
	for _, f := range held {
		if c.memory <= c.maxMemory/4*3 {
			return
		}
		c.drop(f)
	}
}

// between returns the files that may have Profiles in [from, to), by path, and with written those that were
// written then. c.mu is held.
func (c *Catalog) between(from, to time.Time, written bool) []*file {
	var selected []*file
	start, end := from.UnixNano(), to.UnixNano()
	for _, f := range c.files {
		if f.mayStartIn(start, end) || written && f.writtenIn(start, end) {
			selected = append(selected, f)
		}
	}
	slices.SortFunc(selected, func(a, b *file) int { return cmp.Compare(a.Path, b.Path) })
	return selected
}

// Extent is how many Profiles there are, and when.
type Extent struct {
	Profiles int
	// First and Last are the earliest and the latest start, in nanoseconds since the epoch.
	First, Last uint64
}

func (e *Extent) add(profiles int, first, last uint64) {
	if e.Profiles == 0 || first < e.First {
		e.First = first
	}
	e.Last = max(e.Last, last)
	e.Profiles += profiles
}

// Found has the results of Scan besides the Profiles that it visited.
type Found struct {
	// Unread is the number of files that were not read yet: they were written out of the range.
	Unread int
	// All are the Profiles of all files that were read, selected or not.
	All Extent
	// Odd are selected Profiles in files that were written in the range, but start long before or after that.
	Odd Extent
	// Errors are those of reading the files that were written in the range.
	Errors []error
}

// Scan calls visit for the Profiles of each selected series of a file that start in [from, to). Of those of
// which a part is in the range it estimates that part.
func (c *Catalog) Scan(ctx context.Context, options *archive.Options, from, to time.Time, selects func(*recordfile.Key) bool, visit func(*recordfile.Key, []recordfile.Total)) (*Found, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	start, end := from.UnixNano(), to.UnixNano()
	found := &Found{Errors: slices.Clone(c.failed)}
	for _, f := range c.between(from, to, true) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if d := c.use(options, f); d != nil {
			found.scan(f, d, start, end, selects, visit)
		}
	}
	for _, f := range c.files {
		found.count(f, start, end)
	}
	slices.SortFunc(found.Errors, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return found, nil
}

// scan visits the selected Profiles of a file with these details, and counts the odd ones.
func (r *Found) scan(f *file, d *details, start, end int64, selects func(*recordfile.Key) bool, visit func(*recordfile.Key, []recordfile.Total)) {
	written := f.writtenIn(start, end)
	for i := range d.series {
		of := &d.series[i]
		if !selects(&of.key) {
			continue
		}
		var profiles []recordfile.Total
		for _, p := range of.profiles {
			if in, ok := within(&p, uint64(max(0, start)), uint64(max(0, end))); ok {
				profiles = append(profiles, in)
			} else if written && f.isOdd(&p) {
				r.Odd.add(p.Profiles, p.Start, p.Start)
			}
		}
		if len(profiles) > 0 {
			visit(&of.key, profiles)
		}
	}
}

// count adds a file to the unread ones, or its Profiles and its errors.
func (r *Found) count(f *file, start, end int64) {
	if !f.read {
		r.Unread++
		return
	}
	if f.profiles.Profiles > 0 {
		r.All.add(f.profiles.Profiles, f.profiles.First, f.profiles.Last)
	}
	if f.writtenIn(start, end) {
		r.Errors = append(r.Errors, f.errs...)
	}
}

// Files returns the files that may have selected Profiles in [from, to), by path.
func (c *Catalog) Files(ctx context.Context, options *archive.Options, from, to time.Time, selects func(*recordfile.Key) bool) ([]archive.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var selected []archive.File
	for _, f := range c.between(from, to, false) {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		d := c.use(options, f)
		if d != nil && f.mayStartIn(from.UnixNano(), to.UnixNano()) &&
			slices.ContainsFunc(d.series, func(s series) bool { return selects(&s.key) }) {
			selected = append(selected, f.File)
		}
	}
	return selected, nil
}

// Unread returns the files that were not read yet, the newest first.
func (c *Catalog) Unread() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var unread []*file
	for _, f := range c.files {
		if !f.read {
			unread = append(unread, f)
		}
	}
	slices.SortFunc(unread, func(a, b *file) int { return cmp.Compare(b.Modified, a.Modified) })
	paths := make([]string, len(unread))
	for i, f := range unread {
		paths[i] = f.Path
	}
	return paths
}

// Read reads a file that Unread returned.
func (c *Catalog) Read(options *archive.Options, path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.files[path]; f != nil && !f.read && c.use(options, f) != nil {
		f.used = 0 // no request has used it
	}
}
