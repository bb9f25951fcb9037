// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// maxLists is how often Live lists again because files were removed since.
const maxLists = 8

// Live returns the files that count and may have Profiles that end from a time on, and start up to another one. accepts says which groups
// may be meant, by the path of their directories or of one above them; nil accepts all. Live opens no file of another time.
//
// An error may come with the files that were found: it says what could not be listed, or what may count twice.
func (s *Store) Live(ctx context.Context, from, to time.Time, accepts func(group string) bool) ([]*Segment, error) {
	return s.segments(ctx, from, accepts, func(f *layout.File) bool { return f.Overlaps(from, to) })
}

// Since is Live for all partitions that end after a time, whenever the Profiles of their files are.
func (s *Store) Since(ctx context.Context, since time.Time, accepts func(group string) bool) ([]*Segment, error) {
	return s.segments(ctx, since, accepts, func(*layout.File) bool { return true })
}

func (s *Store) segments(ctx context.Context, since time.Time, accepts func(string) bool, selects func(*layout.File) bool) ([]*Segment, error) {
	for range maxLists {
		files, err := s.live(ctx, since, accepts, selects)
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

func (s *Store) live(ctx context.Context, since time.Time, accepts func(string) bool, selects func(*layout.File) bool) ([]layout.File, error) {
	if accepts == nil {
		accepts = func(string) bool { return true }
	}
	since, accepts, selects = s.inside.narrow(since, accepts, selects)
	first, firstErr := s.source.list(ctx, since, accepts, selects, nil)
	second, err := s.source.list(ctx, since, accepts, selects, first)
	files := unite(first, second)
	garbage, inputsErr := s.garbage(ctx, files)
	if errors.Is(inputsErr, ErrGone) {
		return nil, inputsErr
	}
	files = slices.DeleteFunc(files, func(f layout.File) bool { return garbage[nameAndSize{f.Path, f.Size}] || !s.inside.has(&f) })
	return files, errors.Join(cmp.Or(err, firstErr), inputsErr)
}

// Files returns all closed files that count, in the order of their partitions, and all paths, also of those that do not. An error may come
// with them.
func (s *Store) Files(ctx context.Context) (files []layout.File, paths map[string]bool, err error) {
	all := func(string) bool { return true }
	files, err = s.source.list(ctx, time.Time{}, all, func(f *layout.File) bool { return !f.Partial }, nil)
	files = unite(nil, files)
	paths = make(map[string]bool, len(files))
	for i := range files {
		paths[files[i].Path] = true
	}
	garbage, garbageErr := s.garbage(ctx, files)
	if errors.Is(garbageErr, ErrGone) {
		return nil, nil, garbageErr // the next call lists again
	}
	files = slices.DeleteFunc(files, func(f layout.File) bool { return garbage[nameAndSize{f.Path, f.Size}] })
	slices.SortStableFunc(files, func(a, b layout.File) int { return a.Partition.Compare(b.Partition) })
	return files, paths, errors.Join(err, garbageErr)
}

// unite returns the files of two lists in the order of their paths, each once: under its last name, if it was closed between them.
func unite(first, second []layout.File) []layout.File {
	listed := make(map[string]bool, len(second))
	for i := range second {
		listed[second[i].Path] = true
	}
	for i := range first {
		if !listed[first[i].Path] {
			second = append(second, first[i])
		}
	}
	slices.SortFunc(second, func(a, b layout.File) int { return cmp.Compare(a.Path, b.Path) })
	// Both names of a file start with the same stem and a dot, so that no other is between them; that of the partial file is the later one.
	return slices.CompactFunc(second, func(a, b layout.File) bool { return a.Stem == b.Stem && a.Partial != b.Partial && a.ID() == b.ID() })
}

type nameAndSize struct {
	path string
	size int64
}

// garbage returns the files that are named as inputs of others. It opens the compacted files beside whose directory there is one.
func (s *Store) garbage(ctx context.Context, files []layout.File) (map[nameAndSize]bool, error) {
	garbage := map[nameAndSize]bool{}
	var failed error
	for i := range files {
		f := &files[i]
		if f.Level == layout.Written || !layout.HasFileBelow(files, f) {
			continue
		}
		inputs, err := s.Inputs(ctx, f)
		if errors.Is(err, ErrGone) {
			return nil, err
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: what it was made of may count twice: %w", s.source.name(f), err))
			continue
		}
		for _, input := range inputs {
			garbage[nameAndSize{f.Dir() + "/" + input.Name, input.Size}] = true
		}
	}
	return garbage, failed
}
