// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// clean removes the named inputs of a compacted file, and moves the damaged ones. Its name is on the disk before.
func clean(root layout.Dir, open func(string, ...string) (layout.Dir, error), directory string, f *layout.File) (moved []string, err error) {
	inputs, err := store.InputsOf(root, f)
	if err != nil {
		return nil, err
	}
	synced := false
	for _, input := range inputs {
		name := path.Join(f.Dir(), input.Name)
		info, statErr := root.Lstat(name)
		if errors.Is(statErr, fs.ErrNotExist) || statErr == nil && info.Size() != input.Size {
			continue
		}
		if statErr == nil && !synced {
			statErr = syncDir(open, directory, f.Dir())
			synced = statErr == nil
		}
		if statErr != nil {
			return moved, statErr
		}
		if !input.Damaged {
			statErr = root.Remove(name)
		} else if statErr = moveDamaged(root, open, directory, name); statErr == nil {
			moved = append(moved, name)
		}
		if statErr != nil && !errors.Is(statErr, fs.ErrNotExist) {
			err = errors.Join(err, statErr)
		}
	}
	return moved, err
}

func syncDir(open func(string, ...string) (layout.Dir, error), directory, name string) error {
	dir, err := open(directory, strings.Split(name, "/")...)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// moveDamaged moves a file to layout.DamagedDir. Another one of its path stays there.
func moveDamaged(root layout.Dir, open func(string, ...string) (layout.Dir, error), directory, name string) error {
	to := path.Join(layout.DamagedDir, name)
	dir, err := open(directory, strings.Split(path.Dir(to), "/")...)
	if err != nil {
		return err
	}
	_ = dir.Close() // nothing was written through it
	if err = root.Rename(name, to); errors.Is(err, fs.ErrExist) {
		err = root.Rename(name, to+"."+layout.NewID())
	}
	return err
}
