// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"io/fs"
	"maps"
	"strings"
)

// Other is the directory of all groups beyond Options.MaxGroups, whatever their Levels.
const Other = "_other"

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

// countGroups finds the directories that groups have. Retention and other processes remove
// some, and other Writers create some. Groups that were used since the last call
// count, because their directories may not exist yet.
func (w *Writer) countGroups() error {
	if w.options.MaxGroups == 0 || w.options.Levels == 0 {
		return nil
	}
	w.mu.Lock()
	before := maps.Clone(w.directories)
	w.mu.Unlock()
	dir, err := w.options.OpenDir(w.options.Directory)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // nothing was written through it
	found := map[string]struct{}{}
	if err := w.findGroups(dir, nil, found); err != nil {
		return err
	}
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
	return nil
}

// findGroups adds the paths of the groups in dir, which is the directory of the names above.
func (w *Writer) findGroups(dir Dir, above []string, found map[string]struct{}) error {
	entries, err := dir.List()
	errs := []error{w.pathError("list", err, above...)}
	for _, entry := range entries {
		if !entry.IsDir() || !groupName.MatchString(entry.Name()) || len(above) == 0 && entry.Name() == Other {
			continue
		}
		names := append(above[:len(above):len(above)], entry.Name())
		if len(names) == w.options.Levels {
			found[strings.Join(names, "/")] = struct{}{}
			continue
		}
		child, err := dir.OpenChild(entry.Name())
		if err == nil {
			err = w.findGroups(child, names, found)
			_ = child.Close()
		}
		if !errors.Is(err, fs.ErrNotExist) { // it may have been removed
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
