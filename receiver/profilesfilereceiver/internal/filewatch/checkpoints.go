// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
)

// checkpoint is what is stored of a file, under its path, which need not be UTF-8.
type checkpoint struct {
	Version  version
	Handled  bool            `json:",omitempty"`
	Progress json.RawMessage `json:",omitempty"` // of a Handler that has not handled all of this version
}

func (c *checkpoint) isEmpty() bool { return !c.Handled && c.Progress == nil }

// startedKey has a value after the first poll, if StartAtEnd is set. It is no absolute path.
const startedKey = "started"

// load opens the storage and reads all checkpoints. Files whose checkpoint cannot be read have none.
func (w *Watcher) load(ctx context.Context, host component.Host, receiver component.ID) error {
	if w.config.Storage == nil {
		return nil
	}
	found, ok := host.GetExtensions()[*w.config.Storage]
	if !ok {
		return fmt.Errorf("storage: extension %q not found: define it under extensions and list it in service::extensions", w.config.Storage)
	}
	extension, ok := found.(storage.Extension)
	if !ok {
		return fmt.Errorf("storage: extension %q is not a storage extension; use one such as file_storage", w.config.Storage)
	}
	client, err := extension.GetClient(ctx, component.KindReceiver, receiver, "files")
	if err != nil {
		return fmt.Errorf("storage: extension %q cannot open the checkpoints of this receiver; if their file is damaged, remove it: %w", w.config.Storage, err)
	}
	walker, ok := client.(storage.Walker)
	if !ok {
		return errors.Join(fmt.Errorf("storage: extension %q cannot list its keys; use one that can, such as file_storage", w.config.Storage), client.Close(ctx))
	}
	w.storage = client
	now := time.Now()
	var damaged error
	err = walker.Walk(ctx, func(path string, value []byte) ([]*storage.Operation, error) {
		s := &state{foundAt: now}
		if err := json.Unmarshal(value, &s.checkpoint); err != nil {
			damaged = errors.Join(damaged, fmt.Errorf("%s: %w", path, err))
		} else if path == startedKey {
			w.started = true
		} else {
			w.states[path] = s
		}
		return nil, nil
	})
	if err = errors.Join(err, damaged); err != nil {
		w.logger.Warn("Cannot load file checkpoints; re-reading files without one", zap.Error(err))
	}
	return nil
}

// set changes the checkpoint of a file, for save. w.mu is held, as for store.
func (w *Watcher) set(file *File, c checkpoint) {
	file.state.checkpoint = c
	w.unsaved[file.Path] = &file.state.checkpoint
}

// save stores the checkpoints that were not stored yet. If that fails, the next poll tries again.
func (w *Watcher) save() {
	if err := w.store(context.Background()); err != nil {
		w.logger.Warn("Cannot save file checkpoints", zap.Error(err))
	}
}

func (w *Watcher) store(ctx context.Context) error {
	var operations []*storage.Operation
	for path, c := range w.unsaved {
		operation := storage.DeleteOperation(path)
		if !c.isEmpty() {
			value, err := json.Marshal(c)
			if err != nil {
				return err
			}
			operation = storage.SetOperation(path, value)
		}
		operations = append(operations, operation)
	}
	if w.storage != nil && len(operations) > 0 {
		if err := w.storage.Batch(ctx, operations...); err != nil {
			return err
		}
	}
	clear(w.unsaved)
	return nil
}

// Progress reads the last progress that SaveProgress stored for this version of a file into the value. It changes nothing
// if there is none.
func (w *Watcher) Progress(file *File, into any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := file.state.checkpoint
	if c.Progress == nil || !c.Version.sameContent(file.version) {
		return
	}
	if err := json.Unmarshal(c.Progress, into); err != nil {
		w.logger.Warn("Cannot load file checkpoints; re-reading files without one", zap.String("path", file.Path), zap.Error(err))
	}
}

// SaveProgress stores the progress of a Handler in a file that it has not finished.
func (w *Watcher) SaveProgress(file *File, progress any) {
	value, err := json.Marshal(progress)
	if err != nil {
		panic(err) // the values are numbers
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.set(file, checkpoint{Version: file.version, Progress: value})
	w.save()
}
