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
	"strconv"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// state is what a Watcher knows of a file.
type state struct {
	read    version   // the last one that was handled: its checkpoint, which is stored
	found   version   // at the last poll that found it
	foundAt time.Time // when that was
	warned  bool      // it is retried, and that was logged
}

// states are those of all files, by path, which need not be UTF-8. Checkpoints are stored
// in parts, by the hash of the path, so that one more file costs one small write.
type states struct {
	client storage.Client // nil keeps them in memory only
	parts  [storedParts]struct {
		files   map[string]*state
		changed bool // since it was stored
	}
}

const (
	storedParts = 256

	// forgetAfter is how long a file is gone before its checkpoint is dropped. A file
	// system that is away for a while does not make all its files new.
	forgetAfter = time.Hour
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
	operations := make([]*storage.Operation, storedParts)
	for i := range operations {
		operations[i] = storage.GetOperation(partKey(i))
	}
	if err := s.client.Batch(ctx, operations...); err != nil {
		return err
	}
	var errs []error
	for i, operation := range operations {
		if len(operation.Value) == 0 {
			continue
		}
		read := map[string]version{}
		if err := gob.NewDecoder(bytes.NewReader(operation.Value)).Decode(&read); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", partKey(i), err))
			continue
		}
		for path, v := range read {
			s.parts[i].files[path] = &state{read: v, foundAt: now}
		}
	}
	return errors.Join(errs...)
}

// of returns the state of a file.
func (s *states) of(path string) *state {
	files := s.parts[partOf(path)].files
	if files[path] == nil {
		files[path] = &state{}
	}
	return files[path]
}

// setRead stores the checkpoint of a file. After an error the next successful save does.
func (s *states) setRead(ctx context.Context, path string, v version) error {
	s.of(path).read = v
	s.parts[partOf(path)].changed = true
	return s.save(ctx)
}

func (s *states) save(ctx context.Context) error {
	for i := range s.parts {
		part := &s.parts[i]
		if !part.changed {
			continue
		}
		if s.client != nil {
			read := map[string]version{}
			for path, file := range part.files {
				if file.read != (version{}) {
					read[path] = file.read
				}
			}
			var data bytes.Buffer
			if err := gob.NewEncoder(&data).Encode(read); err != nil {
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

// forget drops the files that the poll at this time did not find: those with a
// checkpoint when they have been gone for long, the others at once.
func (s *states) forget(ctx context.Context, poll time.Time) error {
	for i := range s.parts {
		part := &s.parts[i]
		for path, file := range part.files {
			hasCheckpoint := file.read != (version{})
			if gone := poll.Sub(file.foundAt); gone >= forgetAfter || gone > 0 && !hasCheckpoint {
				delete(part.files, path)
				part.changed = part.changed || hasCheckpoint
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
