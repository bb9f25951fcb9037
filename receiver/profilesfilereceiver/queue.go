// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/filewatch"
)

// queue holds the files that wait, oldest first, and those in progress. It is safe for concurrent use.
type queue struct {
	mu         sync.Mutex
	files      []*filewatch.File
	inProgress map[*filewatch.File]struct{}
	added      chan struct{} // has an element if next may find more than before
}

func newQueue() queue {
	return queue{inProgress: map[*filewatch.File]struct{}{}, added: make(chan struct{}, 1)}
}

func (q *queue) add(file *filewatch.File) {
	q.mu.Lock()
	defer q.mu.Unlock()
	place, _ := slices.BinarySearchFunc(q.files, file, func(a, b *filewatch.File) int {
		return cmp.Or(a.Modified.Compare(b.Modified), strings.Compare(a.Path, b.Path))
	})
	q.files = slices.Insert(q.files, place, file)
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// next waits for a file and takes it, until done. It is nil when ctx ends.
func (q *queue) next(ctx context.Context) *filewatch.File {
	for {
		if file := q.take(); file != nil {
			return file
		}
		select {
		case <-ctx.Done():
			return nil
		case <-q.added:
		}
	}
}

func (q *queue) take() *filewatch.File {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.files) == 0 {
		return nil
	}
	file := q.files[0]
	q.files = slices.Delete(q.files, 0, 1)
	q.inProgress[file] = struct{}{}
	return file
}

func (q *queue) done(file *filewatch.File) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.inProgress, file)
}

// remove removes a file that waits, and returns it, or nil.
func (q *queue) remove(path string) *filewatch.File {
	q.mu.Lock()
	defer q.mu.Unlock()
	place := slices.IndexFunc(q.files, func(f *filewatch.File) bool { return f.Path == path })
	if place < 0 {
		return nil
	}
	file := q.files[place]
	q.files = slices.Delete(q.files, place, place+1)
	return file
}

// backlog is the files that wait or are in progress.
type backlog struct {
	files  int
	bytes  int64
	oldest time.Time // zero if there is none
}

func (q *queue) waiting() (b backlog) {
	q.mu.Lock()
	defer q.mu.Unlock()
	add := func(f *filewatch.File) {
		b.files++
		b.bytes += f.Size
		if b.oldest.IsZero() || f.Modified.Before(b.oldest) {
			b.oldest = f.Modified
		}
	}
	for _, file := range q.files {
		add(file)
	}
	for file := range q.inProgress {
		add(file)
	}
	return b
}
