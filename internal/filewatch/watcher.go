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

	checkpoints *checkpoints
	pending     map[string]version // files found that may still grow
	retried     map[string]bool    // files that are handled again, by path

	cancel  context.CancelFunc
	running sync.WaitGroup
}

// New returns a Watcher of a valid configuration.
func New(config Config, handle Handler, logger *zap.Logger) (*Watcher, error) {
	finder, err := newFinder(config, logger)
	if err != nil {
		return nil, err
	}
	return &Watcher{
		config:      config,
		finder:      finder,
		handle:      handle,
		logger:      logger,
		checkpoints: newCheckpoints(nil),
		retried:     map[string]bool{},
	}, nil
}

// Start loads the checkpoints of the receiver with this ID and starts to poll.
func (w *Watcher) Start(ctx context.Context, host component.Host, receiver component.ID) error {
	client, err := w.storageClient(ctx, host, receiver)
	if err != nil {
		return err
	}
	w.checkpoints = newCheckpoints(client)
	if err := w.checkpoints.load(ctx); err != nil {
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
	return w.checkpoints.close(ctx)
}

// Poll finds files once, and handles those that are complete and new. Start calls it.
func (w *Watcher) Poll(ctx context.Context) {
	files, closeRoots := w.finder.find()
	defer closeRoots()
	now := time.Now()
	found := make(map[string]bool, len(files))
	pending := map[string]version{}
	var ready []*File
	for _, file := range files {
		found[file.Path] = true
		switch {
		case file.Size == 0, w.checkpoints.has(file.Path, file.version):
		case w.pending[file.Path] == file.version, now.Sub(time.Unix(0, file.version.ModTime)) >= w.config.PollInterval:
			ready = append(ready, file)
		default:
			pending[file.Path] = file.version
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
		// What was accepted is remembered, also during shutdown.
		w.remember(context.WithoutCancel(ctx), file, err)
		if ctx.Err() != nil {
			return
		}
	}
	w.pending = pending
	for path := range w.retried {
		if !found[path] {
			delete(w.retried, path)
		}
	}
	if err := w.checkpoints.forget(ctx, found, now); err != nil && ctx.Err() == nil {
		w.logger.Warn("Cannot save file checkpoints", zap.Error(err))
	}
}

// remember logs the result of handling a file, and saves its checkpoint unless it is
// handled again.
func (w *Watcher) remember(ctx context.Context, file *File, err error) {
	path := zap.String("path", file.Path)
	if errors.Is(err, ErrChanged) {
		return
	}
	if _, retry := errors.AsType[*RetryError](err); retry {
		if !w.retried[file.Path] {
			w.retried[file.Path] = true
			w.logger.Warn("Cannot process file; will retry", path, zap.Error(err))
		}
		return
	}
	if err != nil {
		w.logger.Warn("Skipping file until it changes", path, zap.Error(err))
	} else {
		w.logger.Debug("Read file", path)
	}
	delete(w.retried, file.Path)
	if err := w.checkpoints.put(ctx, file.Path, file.version); err != nil {
		w.logger.Warn("Cannot save file checkpoints", zap.Error(err))
	}
}
