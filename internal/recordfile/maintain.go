// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Maintain applies Retention, counts groups, and retries to recover incomplete files. It may
// take long.
func (w *Writer) Maintain() { w.maintain(w.options.Retention) }

// maintain looks through all directories once.
func (w *Writer) maintain(retention Retention) {
	w.maintaining.Lock()
	defer w.maintaining.Unlock()
	retain, count := retention != (Retention{}), w.options.MaxGroups > 0 && w.options.Levels > 0
	if w.recovered && !retain && !count {
		return
	}
	dir, err := w.options.OpenDir(w.options.Directory)
	if err != nil {
		w.options.Failed(err)
		return
	}
	defer func() { _ = dir.Close() }() // everything in it was synced
	before, found := w.admitted(), map[string]struct{}{}
	var files []storedFile
	complete, err := w.walk(dir, nil, found, func(dir Dir, group []string) (err error) {
		if !w.recovered {
			err = w.recoverFiles(dir, group)
		}
		if retain {
			stored, listErr := storedFiles(dir, strings.Join(group, "/"))
			files = append(files, stored...)
			err = errors.Join(err, w.pathError("list", listErr, group...))
		}
		return err
	})
	w.recovered = w.recovered || err == nil
	if retain {
		err = errors.Join(err, w.removeSurplus(dir, retention.surplus(files, w.options.Now()), found))
	}
	if complete && count {
		w.updateAdmitted(before, found)
	}
	if err != nil {
		w.options.Failed(err)
	}
}

// walk visits the directory and those of all groups, and adds those groups to found. An error in one directory
// does not stop it. complete is set if all groups were found: that a file cannot be recovered, or the directory
// of a group read, does not matter.
func (w *Writer) walk(dir Dir, group []string, found map[string]struct{}, visit func(dir Dir, group []string) error) (complete bool, err error) {
	if len(group) == w.options.Levels {
		return true, visit(dir, group)
	}
	names, err := dir.Names()
	complete = err == nil
	errs := []error{w.pathError("list", err, group...)}
	for _, name := range names {
		if !IsGroupName(name) {
			continue
		}
		child, err := dir.OpenChild(name)
		if errors.Is(err, ErrNotDirectory) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		below := append(slices.Clone(group), name)
		isGroup := len(below) == w.options.Levels
		if isGroup && below[0] != Other {
			found[strings.Join(below, "/")] = struct{}{}
		}
		if err != nil {
			complete = complete && isGroup
			errs = append(errs, w.pathError("open", err, below...))
			continue
		}
		all, err := w.walk(child, below, found, visit)
		_ = child.Close() // everything in it was synced
		complete = complete && all
		errs = append(errs, err)
	}
	return complete, errors.Join(append(errs, visit(dir, group))...)
}

// admit reports whether a group may have its own directory: it has one, or there are fewer than
// MaxGroups. w.mu is held. path is empty if records have no group.
func (w *Writer) admit(path string) bool {
	if path == "" || w.options.MaxGroups == 0 {
		return true
	}
	if _, known := w.directories[path]; known {
		return true
	}
	if len(w.directories) >= w.options.MaxGroups {
		return false
	}
	w.directories[path] = struct{}{}
	return true
}

// admitted returns a copy of the groups that have or may have a directory.
func (w *Writer) admitted() map[string]struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.directories)
}

// updateAdmitted takes over the groups whose directories were found. Retention and other processes remove
// some, and other Writers create some. Of those that were admitted before the search, the ones used since the
// last call stay, because their directories may not exist yet.
func (w *Writer) updateAdmitted(before, found map[string]struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for path := range before {
		if _, exists := found[path]; exists {
			continue
		}
		if g := w.groups[path]; g == nil || g.lastUse <= w.countedUses {
			delete(w.directories, path)
		}
	}
	maps.Copy(w.directories, found)
	w.countedUses = w.uses
}
