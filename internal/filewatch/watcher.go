// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
)

// Handler handles a file. After an error other than a *RetryError and ErrChanged, the
// file is skipped until it changes.
type Handler func(ctx context.Context, file *File) error

// Watcher passes files to a Handler, one after the other, from Start to Shutdown.
type Watcher struct {
	config Config
	finder *finder
	handle Handler
	logger *zap.Logger

	states *states

	cancel  context.CancelFunc
	running sync.WaitGroup
}

// New returns a Watcher of a valid configuration.
func New(config Config, handle Handler, logger *zap.Logger) (*Watcher, error) {
	finder, err := newFinder(config, logger)
	if err != nil {
		return nil, err
	}
	return &Watcher{config: config, finder: finder, handle: handle, logger: logger, states: newStates(nil)}, nil
}

// Start loads the checkpoints of the receiver with this ID and starts to poll.
func (w *Watcher) Start(ctx context.Context, host component.Host, receiver component.ID) error {
	client, err := w.storageClient(ctx, host, receiver)
	if err != nil {
		return err
	}
	w.states = newStates(client)
	if err := w.states.load(ctx, time.Now()); err != nil {
		w.logger.Warn("Cannot load file checkpoints; re-reading files without one", zap.Error(err))
	}
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.running.Go(func() {
		ticker := time.NewTicker(w.config.PollInterval)
		defer ticker.Stop()
		for {
			w.Poll(ctx)
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	return nil
}

func (w *Watcher) storageClient(ctx context.Context, host component.Host, receiver component.ID) (storage.Client, error) {
	if w.config.Storage == nil {
		return nil, nil
	}
	found, ok := host.GetExtensions()[*w.config.Storage]
	if !ok {
		return nil, fmt.Errorf("storage: extension %q not found: define it under extensions and list it in service::extensions", w.config.Storage)
	}
	extension, ok := found.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("storage: extension %q is not a storage extension; use one such as file_storage", w.config.Storage)
	}
	return extension.GetClient(ctx, component.KindReceiver, receiver, "files")
}

// Shutdown cancels the context of the Handler and waits until it has returned.
func (w *Watcher) Shutdown(ctx context.Context) error {
	if w.cancel == nil { // not started
		return nil
	}
	w.cancel()
	w.running.Wait()
	w.cancel = nil
	return w.states.close(ctx)
}

// Poll finds files once, and handles those that are complete and new. Start calls it.
func (w *Watcher) Poll(ctx context.Context) {
	files, closeRoots := w.finder.find()
	defer closeRoots()
	now := time.Now()
	var ready []*File
	for _, file := range files {
		known := w.states.lookup(file.Path)
		complete := known.found == file.version || now.Sub(time.Unix(0, file.version.ModTime)) >= w.config.PollInterval
		known.found, known.foundAt = file.version, now
		if complete && file.Size > 0 && !known.checkpoint.sameContent(file.version) {
			ready = append(ready, file)
		}
	}
	slices.SortFunc(ready, func(a, b *File) int {
		return cmp.Or(cmp.Compare(a.version.ModTime, b.version.ModTime), strings.Compare(a.Path, b.Path))
	})
	for _, file := range ready {
		err := w.handle(ctx, file)
		if err != nil && ctx.Err() != nil {
			return
		}
		// The checkpoint of an accepted file is saved during shutdown, too.
		w.handled(context.WithoutCancel(ctx), file, err)
		if ctx.Err() != nil {
			return
		}
	}
	if err := w.states.forget(ctx, now); err != nil && ctx.Err() == nil {
		w.logger.Warn("Cannot save file checkpoints", zap.Error(err))
	}
}

// handled logs the result of handling a file, and saves its checkpoint unless it is
// handled again.
func (w *Watcher) handled(ctx context.Context, file *File, err error) {
	path, known := zap.String("path", file.Path), w.states.lookup(file.Path)
	_, retry := errors.AsType[*RetryError](err)
	switch {
	case errors.Is(err, ErrChanged):
		return
	case retry && known.warned:
		return
	case retry:
		known.warned = true
		w.logger.Warn("Cannot process file; will retry", path, zap.Error(err))
		return
	case err != nil:
		w.logger.Warn("Skipping file until it changes", path, zap.Error(err))
	default:
		w.logger.Debug("Read file", path)
	}
	known.warned = false
	if err := w.states.setCheckpoint(ctx, file.Path, file.version); err != nil {
		w.logger.Warn("Cannot save file checkpoints", zap.Error(err))
	}
}
