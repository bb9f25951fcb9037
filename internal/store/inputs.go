// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// errNoInputs says that a compacted file does not say what it was made of.
var errNoInputs = errors.New("both lists of its inputs are damaged")

// maxIndex bounds the memory in bytes of an index without the text of its entries.
const maxIndex = 64 << 20

// readInputs reads what a compacted file was made of: from its index or else from its head, which does not say which of them were
// damaged, so that all count as such.
func readInputs(from io.ReaderAt, f *File) ([]segment.Input, error) {
	x, _, err := segment.ReadIndex(from, f.Size, maxIndex)
	if err == nil {
		return ownInputs(f, x.Inputs), nil
	}
	if !errors.Is(err, segment.ErrNoIndex) {
		return nil, err
	}
	inputs, err := segment.ReadInputs(from, f.Size, maxIndex)
	if errors.Is(err, segment.ErrNoIndex) {
		return nil, errNoInputs
	}
	for i := range inputs {
		inputs[i].Damaged = true
	}
	return ownInputs(f, inputs), err
}

// ownInputs returns the inputs that f may have: closed files of lower levels of its partition. An index that somebody else made cannot
// name others.
func ownInputs(f *File, inputs []segment.Input) (own []segment.Input) {
	for _, input := range inputs {
		if !filepath.IsLocal(filepath.FromSlash(input.Name)) || strings.HasPrefix(path.Clean(input.Name), "..") {
			continue
		}
		name, ok := ParsePath(path.Join(f.dir(), input.Name))
		end := f.Partition.Add(f.Level.span())
		if ok && !name.Partial && name.Level < f.Level && name.Group == f.Group && !name.Partition.Before(f.Partition) && name.Partition.Before(end) {
			own = append(own, input)
		}
	}
	return own
}

// inputsOf reads what a compacted file below root was made of.
func inputsOf(root Dir, f *File) ([]segment.Input, error) {
	file, err := root.OpenToRead(f.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return readInputs(file, f)
}

// hasCompacted reports whether names has a file that was compacted from the partition with the name of a directory, such as "14",
// by the writer with an ID, or by any if it is "".
func hasCompacted(names []string, partition, id string) bool {
	for _, name := range names {
		if strings.HasPrefix(name, partition+"_"+id) && compactedName.MatchString(name) {
			return true
		}
	}
	return false
}

// nextFree returns the first hour after one that was compacted, or zero if it was not. The caller has the lock of the hour's
// directory.
func (w *Writer) nextFree(group []string, hour time.Time) (time.Time, error) {
	inside := append(group[:len(group):len(group)], strings.Split(hour.Format(hourPath), "/")...)
	for _, level := range []struct {
		above int
		next  time.Time
	}{{1, hour.Add(time.Hour)}, {2, hour.Truncate(24 * time.Hour).Add(24 * time.Hour)}} {
		at := len(inside) - level.above
		dir, err := w.options.OpenDir(w.options.Directory, inside[:at]...)
		if err != nil {
			return time.Time{}, err
		}
		names, err := dir.Names()
		_ = dir.Close() // nothing was written through it
		if err != nil {
			return time.Time{}, err
		}
		if hasCompacted(names, inside[at], w.own) {
			return level.next, nil
		}
	}
	return time.Time{}, nil
}

// clean removes the named inputs of a compacted file, and moves the damaged ones. Its name is on the disk before.
func clean(root Dir, open func(string, ...string) (Dir, error), directory string, f *File) (moved []string, err error) {
	inputs, err := inputsOf(root, f)
	if err != nil {
		return nil, err
	}
	synced := false
	for _, input := range inputs {
		name := path.Join(f.dir(), input.Name)
		info, statErr := root.Lstat(name)
		if errors.Is(statErr, fs.ErrNotExist) || statErr == nil && info.Size() != input.Size {
			continue
		}
		if statErr == nil && !synced {
			statErr = syncDir(open, directory, f.dir())
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

func syncDir(open func(string, ...string) (Dir, error), directory, name string) error {
	dir, err := open(directory, strings.Split(name, "/")...)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// damagedDir has the damaged inputs of compacted files, by their paths. They do not count.
const damagedDir = "damaged"

// moveDamaged moves a file to damagedDir. Another one of its path stays there.
func moveDamaged(root Dir, open func(string, ...string) (Dir, error), directory, name string) error {
	to := path.Join(damagedDir, name)
	dir, err := open(directory, strings.Split(path.Dir(to), "/")...)
	if err != nil {
		return err
	}
	_ = dir.Close() // nothing was written through it
	if err = root.Rename(name, to); errors.Is(err, fs.ErrExist) {
		err = root.Rename(name, to+"."+newID())
	}
	return err
}
