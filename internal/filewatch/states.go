// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// state is the progress of a file.
type state struct {
	checkpoint version   // the last version that was handled; stored
	begun      version   // the version that progress is of; stored
	progress   []byte    // of a Handler that has not handled all of the file; stored
	pending    bool      // the Handler has returned ErrPending, or not yet returned
	removed    version   // the version that is gone; the next poll may have found it before that
	found      version   // the version at the last poll that found the file
	foundAt    time.Time // the time of that poll
	since      time.Time // the time of the first poll that found that version
	retry      retry
}

// retry is the progress of a file that could not be handled.
type retry struct {
	failures int           // in a row
	delay    time.Duration // from the last failure to at
	at       time.Time     // of the next attempt
	rejected bool          // by the pipeline, at least once
}

// checkpoint is the stored state of a file. Its fields are exported only for gob.
type checkpoint struct {
	Handled, Begun version
	Progress       []byte
}

// isStored reports whether there is anything to store.
func (s *state) isStored() bool {
	return s.removed == version{} && (s.checkpoint != version{} || s.progress != nil)
}

// states holds the state of each file by its path, which need not be UTF-8. Checkpoints are
// stored in parts, by the hash of the path, so that one more file costs one small write.
type states struct {
	client  storage.Client // nil keeps them in memory only
	started bool           // with StartAtEnd: there has been a poll, maybe of an earlier process
	parts   [storedParts]struct {
		files   map[string]*state
		changed bool // since the part was stored
	}
}

const (
	storedParts = 256

	// forgetAfter is how long a file is gone before its checkpoint is dropped. If a
	// file system is unmounted for a shorter time, its files are not read again.
	forgetAfter = time.Hour

	// startedKey has a value after the first poll, if StartAtEnd is set.
	startedKey = "started"

	// replacedMark follows the path in the key of a replaced file. No path contains it.
	replacedMark = "\x00"
)

func newStates(client storage.Client) *states {
	s := &states{client: client}
	for i := range s.parts {
		s.parts[i].files = map[string]*state{}
	}
	return s
}

func partOf(path string) int {
	hash := fnv.New32a()
	hash.Write([]byte(path))
	return int(hash.Sum32() % storedParts)
}

func partKey(i int) string { return "files." + strconv.Itoa(i) }

// load reads the stored checkpoints. A part that cannot be read is empty, and the error
// says so.
func (s *states) load(ctx context.Context, now time.Time) error {
	if s.client == nil {
		return nil
	}
	operations := make([]*storage.Operation, storedParts, storedParts+1)
	for i := range operations {
		operations[i] = storage.GetOperation(partKey(i))
	}
	started := storage.GetOperation(startedKey)
	if err := s.client.Batch(ctx, append(operations, started)...); err != nil {
		return err
	}
	s.started = started.Value != nil
	var errs []error
	for i, operation := range operations {
		if len(operation.Value) == 0 {
			continue
		}
		checkpoints := map[string]checkpoint{}
		if err := gob.NewDecoder(bytes.NewReader(operation.Value)).Decode(&checkpoints); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", partKey(i), err))
			continue
		}
		for path, c := range checkpoints {
			s.parts[i].files[path] = &state{checkpoint: c.Handled, begun: c.Begun, progress: c.Progress, foundAt: now}
		}
	}
	return errors.Join(errs...)
}

// start saves all checkpoints and notes that there has been a poll.
func (s *states) start(ctx context.Context) error {
	s.started = true
	err := s.save(ctx)
	if err == nil && s.client != nil {
		err = s.client.Set(ctx, startedKey, []byte("1"))
	}
	return err
}

// lookup returns the state of a file, and adds one if there is none.
func (s *states) lookup(path string) *state {
	files := s.parts[partOf(path)].files
	if files[path] == nil {
		files[path] = &state{}
	}
	return files[path]
}

// all iterates over the states of all files, with their paths.
func (s *states) all() iter.Seq2[string, *state] {
	return func(yield func(string, *state) bool) {
		for i := range s.parts {
			for path, file := range s.parts[i].files {
				if !yield(path, file) {
					return
				}
			}
		}
	}
}

// adoptRenamed gives each file without a checkpoint that of a file of the same identity,
// which it was before it was renamed. It returns how many it found.
func (s *states) adoptRenamed(files []*File, poll time.Time) (renamed int) {
	var byIdentity map[identity]bool
	for _, file := range files {
		known := s.lookup(file.Path)
		if file.version.Inode == 0 || known.checkpoint.sameContent(file.version) {
			continue
		}
		if byIdentity == nil { // before any checkpoint is replaced
			byIdentity = s.identities()
		}
		if byIdentity[file.version.identity()] {
			known.foundAt = poll
			s.replaceCheckpoint(file.Path, file.version)
			renamed++
		}
	}
	return renamed
}

// identities are those of all checkpoints.
func (s *states) identities() map[identity]bool {
	all := map[identity]bool{}
	for _, file := range s.all() {
		if file.checkpoint.Inode != 0 {
			all[file.checkpoint.identity()] = true
		}
	}
	return all
}

// count returns how many of these files, found by the poll at this time, are neither handled nor
// pending, and the pending files that the poll did not find.
func (s *states) count(files []*File, poll time.Time) (unhandled int, gone []string) {
	for _, file := range files {
		if known := s.lookup(file.Path); !known.pending && known.removed != file.version && !known.checkpoint.sameContent(file.version) {
			unhandled++
		}
	}
	for path, file := range s.all() {
		if file.pending && poll.After(file.foundAt) {
			gone = append(gone, path)
		}
	}
	return unhandled, gone
}

// nextRetry is the time of the first retry, if files wait for one.
func (s *states) nextRetry() (at time.Time, waiting bool) {
	for _, file := range s.all() {
		if next := file.retry.at; !next.IsZero() && (!waiting || next.Before(at)) {
			at, waiting = next, true
		}
	}
	return at, waiting
}

// setCheckpoint stores the checkpoint of a file. If that fails, the next successful save
// stores it.
func (s *states) setCheckpoint(ctx context.Context, path string, v version) error {
	s.replaceCheckpoint(path, v)
	return s.save(ctx)
}

// setProgress stores the progress of a version that is not handled yet.
func (s *states) setProgress(ctx context.Context, path string, v version, progress []byte) error {
	known := s.lookup(path)
	known.begun, known.progress = v, progress
	s.parts[partOf(path)].changed = true
	return s.save(ctx)
}

// remove notes that the Handler has removed a version of a file, or that it is gone. That need not be stored now.
func (s *states) remove(path string, v version) {
	known := s.lookup(path)
	part := &s.parts[partOf(path)]
	part.changed = part.changed || known.isStored()
	known.removed = v
}

// replaceCheckpoint sets the checkpoint of a file that was found. If another file had its
// path, that file's checkpoint is kept until the next poll: it may have been renamed after
// its new directory was listed.
func (s *states) replaceCheckpoint(path string, v version) {
	part, known := &s.parts[partOf(path)], s.lookup(path)
	if old := known.checkpoint; old.Inode != 0 && old.Inode != v.Inode {
		part.files[path+replacedMark+strconv.FormatUint(old.Inode, 10)] = &state{checkpoint: old, foundAt: known.foundAt}
	}
	known.checkpoint, known.begun, known.progress = v, version{}, nil
	part.changed = true
}

func (s *states) save(ctx context.Context) error {
	for i := range s.parts {
		part := &s.parts[i]
		if !part.changed {
			continue
		}
		if s.client != nil {
			checkpoints := map[string]checkpoint{}
			for path, file := range part.files {
				if file.isStored() {
					checkpoints[path] = checkpoint{Handled: file.checkpoint, Begun: file.begun, Progress: file.progress}
				}
			}
			var data bytes.Buffer
			if err := gob.NewEncoder(&data).Encode(checkpoints); err != nil {
				return err
			}
			if err := s.client.Set(ctx, partKey(i), data.Bytes()); err != nil {
				return err
			}
		}
		part.changed = false
	}
	return nil
}

// forget drops the files that the poll at this time did not find: files with a checkpoint
// after forgetAfter, replaced files and those without a checkpoint at once.
func (s *states) forget(ctx context.Context, poll time.Time) error {
	for i := range s.parts {
		part := &s.parts[i]
		for path, file := range part.files {
			isStored := file.isStored()
			replaced := strings.Contains(path, replacedMark)
			gone := poll.Sub(file.foundAt)
			if file.pending {
				continue
			}
			if gone > 0 {
				file.retry = retry{}
			}
			if gone >= forgetAfter || gone > 0 && (replaced || !isStored) {
				delete(part.files, path)
				part.changed = part.changed || isStored && !replaced // that can wait
			}
		}
	}
	return s.save(ctx)
}

func (s *states) close(ctx context.Context) error {
	if s.client == nil {
		return nil
	}
	return errors.Join(s.save(ctx), s.client.Close(ctx))
}
