// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// ErrNoInputs says that a compacted file does not say what it was made of.
var ErrNoInputs = errors.New("both lists of its inputs are damaged")

// maxIndex bounds the memory in bytes of an index without the text of its entries.
const maxIndex = 64 << 20

// readInputs reads what a compacted file was made of: from its index or else from its head, which does not say which of them were
// damaged, so that all count as such.
func readInputs(from io.ReaderAt, f *layout.File) ([]segment.Input, error) {
	x, _, err := segment.ReadIndex(from, f.Size, maxIndex)
	if err == nil {
		return ownInputs(f, x.Inputs), nil
	}
	if !errors.Is(err, segment.ErrNoIndex) {
		return nil, err
	}
	inputs, err := segment.ReadInputs(from, f.Size, maxIndex)
	if errors.Is(err, segment.ErrNoIndex) {
		return nil, ErrNoInputs
	}
	for i := range inputs {
		inputs[i].Damaged = true
	}
	return ownInputs(f, inputs), err
}

// ownInputs returns the inputs that f may have: closed files of lower levels of its partition. An index that somebody else made cannot
// name others.
func ownInputs(f *layout.File, inputs []segment.Input) (own []segment.Input) {
	for _, input := range inputs {
		if !filepath.IsLocal(filepath.FromSlash(input.Name)) || strings.HasPrefix(path.Clean(input.Name), "..") {
			continue
		}
		name, ok := layout.ParsePath(path.Join(f.Dir(), input.Name))
		end := f.Partition.Add(f.Level.Span())
		if ok && !name.Partial && name.Level < f.Level && name.Group == f.Group && !name.Partition.Before(f.Partition) && name.Partition.Before(end) {
			own = append(own, input)
		}
	}
	return own
}

// InputsOf reads what a compacted file below root was made of.
func InputsOf(root layout.Dir, f *layout.File) ([]segment.Input, error) {
	file, err := root.OpenToRead(f.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return readInputs(file, f)
}

// nextFree returns the first hour after one that was compacted, or zero if it was not. The caller has the lock of the hour's
// directory.
func (w *Writer) nextFree(group []string, hour time.Time) (time.Time, error) {
	inside := append(group[:len(group):len(group)], strings.Split(hour.Format(layout.HourPath), "/")...)
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
		if layout.HasCompacted(names, inside[at], w.own) {
			return level.next, nil
		}
	}
	return time.Time{}, nil
}
