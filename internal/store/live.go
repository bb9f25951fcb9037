// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// lookBack is how much further back than from Live looks: a process stands for some time after its last interval.
	lookBack = 15 * time.Minute
	// maxLists is how often Live lists again because files were removed since.
	maxLists = 8
)

// Live returns the files that count and may have Profiles that end from a time on (or in the quarter of an hour before), and start
// up to another one. accepts says which groups may be meant, by the path of
// their directories or of one above them; nil accepts all. Live opens no file of another time.
//
// An error may come with the files that were found: it says what could not be listed, or what may count twice.
func (s *Store) Live(ctx context.Context, from, to time.Time, accepts func(group string) bool) ([]*Segment, error) {
	for range maxLists {
		files, err := s.live(ctx, from.Add(-lookBack), to, accepts)
		if errors.Is(err, ErrGone) && ctx.Err() == nil {
			continue
		}
		segments := make([]*Segment, len(files))
		for i := range files {
			segments[i] = &Segment{File: files[i], store: s}
		}
		return segments, err
	}
	return nil, fmt.Errorf("files were removed during each of %d listings: %w", maxLists, ErrGone)
}

func (s *Store) live(ctx context.Context, from, to time.Time, accepts func(string) bool) ([]File, error) {
	if accepts == nil {
		accepts = func(string) bool { return true }
	}
	selects := func(f *File) bool { return f.overlaps(from, to) }
	first, firstErr := s.source.list(ctx, from, accepts, selects)
	second, err := s.source.list(ctx, from, accepts, selects)
	files := unite(first, second)
	garbage, inputsErr := s.garbage(ctx, files)
	if errors.Is(inputsErr, ErrGone) {
		return nil, inputsErr
	}
	files = slices.DeleteFunc(files, func(f File) bool { return garbage[nameAndSize{f.Path, f.Size}] })
	return files, errors.Join(cmp.Or(err, firstErr), inputsErr)
}

// unite returns the files of two lists, the second of which is newer, in the order of their paths. A file that was closed in between is
// in it once.
func unite(first, second []File) []File {
	all := make(map[string]File, len(second))
	for _, list := range [][]File{first, second} {
		for _, f := range list {
			if known, found := all[f.id()]; !found || known.Partial {
				all[f.id()] = f
			}
		}
	}
	files := make([]File, 0, len(all))
	for _, f := range all {
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	return files
}

type nameAndSize struct {
	path string
	size int64
}

// garbage returns the files that are named as inputs of others. It opens the compacted files beside whose directory there is one.
func (s *Store) garbage(ctx context.Context, files []File) (map[nameAndSize]bool, error) {
	garbage := map[nameAndSize]bool{}
	var failed error
	for i := range files {
		f := &files[i]
		if f.Level == Written || !hasFileBelow(files, f) {
			continue
		}
		inputs, err := s.inputs(ctx, f)
		if errors.Is(err, ErrGone) {
			return nil, err
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: what it was made of may count twice: %w", s.source.name(f), err))
			continue
		}
		for _, input := range inputs {
			garbage[nameAndSize{f.dir() + "/" + input.Name, input.Size}] = true
		}
	}
	return garbage, failed
}

// hasFileBelow reports whether files, which are in the order of their paths, have one of a lower level of the partition of f.
func hasFileBelow(files []File, f *File) bool {
	partition := f.Path[:len(f.dir())+1+2] // the hour or day of its name
	prefix := partition + "/"
	at, _ := slices.BinarySearchFunc(files, prefix, func(f File, prefix string) int { return cmp.Compare(f.Path, prefix) })
	return at < len(files) && strings.HasPrefix(files[at].Path, prefix)
}
