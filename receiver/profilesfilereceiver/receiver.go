// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/filewatch"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// quietTime is how long a file must not have changed to be complete, unless its name says that it is.
const quietTime = 10 * time.Second

// fileReceiver is the component.
type fileReceiver struct {
	config    *Config
	id        component.ID
	logger    *zap.Logger
	next      xconsumer.Profiles
	obsreport *receiverhelper.ObsReport
	telemetry *telemetry

	watcher  *filewatch.Watcher
	queue    queue
	archive  archive.Options
	slots    *semaphore.Weighted // records in progress
	memory   *semaphore.Weighted // their bytes
	capacity int64               // of memory
	rejected rejected
	idle     int // polls in a row without anything to read

	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newReceiver(set receiver.Settings, config *Config, next xconsumer.Profiles) (*fileReceiver, error) {
	r := &fileReceiver{
		config: config, id: set.ID, logger: set.Logger, next: next,
		queue:    newQueue(),
		slots:    semaphore.NewWeighted(int64(config.Concurrency)),
		capacity: int64(config.MaxInFlight) / 4 * 3,
	}
	r.memory = semaphore.NewWeighted(r.capacity)
	// A reader takes up to three times the size of a record. Records in progress are counted in memory.
	r.archive = archive.Options{MaxMemory: 4 * r.capacity, MaxRecord: int64(config.MaxInFlight) / 8, Setting: "max_in_flight"}
	obsreport, reportErr := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: set.ID, Transport: "file", ReceiverCreateSettings: set})
	telemetry, telemetryErr := newTelemetry(set, &r.queue)
	watcher, watcherErr := r.newWatcher()
	if err := errors.Join(reportErr, telemetryErr, watcherErr); err != nil {
		return nil, err
	}
	r.obsreport, r.telemetry, r.watcher = obsreport, telemetry, watcher
	r.rejected = rejected{config: config.Rejected, logger: set.Logger, telemetry: telemetry}
	return r, nil
}

// newWatcher returns the Watcher of the receiver, which skips the directories that it writes to.
func (r *fileReceiver) newWatcher() (*filewatch.Watcher, error) {
	watch := r.config.Watch
	watch.Exclude = slices.Clone(watch.Exclude)
	for _, directory := range []string{r.config.MoveTo, r.config.Rejected.Directory} {
		if directory != "" {
			watch.Exclude = append(watch.Exclude, escapeGlob.Replace(filepath.Clean(directory))+"/**")
		}
	}
	w, err := filewatch.New(watch, r.enqueue, r.logger)
	if err != nil {
		return nil, err
	}
	w.StartAtEnd = r.config.StartAt == startAtEnd
	w.NeverEmpty = isClosed
	w.QuietTime = func(file *filewatch.File) time.Duration {
		if file.Size > 0 && isClosed(file.Path) {
			return 0
		}
		return quietTime // of an empty file, too: a program may copy it
	}
	w.Polled = r.polled
	return w, nil
}

var escapeGlob = strings.NewReplacer("*", "\\*", "?", "\\?", "[", "\\[", "{", "\\{", "\\", "/")

// isClosed reports whether the exporter has closed, and so renamed, the file of this path. Such a file is not empty.
func isClosed(path string) bool {
	_, ok := recordfile.ParseName(filepath.Base(path))
	return ok
}

// Start starts to read.
func (r *fileReceiver) Start(ctx context.Context, host component.Host) error {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if err := r.watcher.Start(ctx, host, r.id); err != nil {
		cancel()
		return err
	}
	r.cancel = cancel
	r.running.Go(func() {
		for {
			file := r.queue.next(running)
			if file == nil {
				return
			}
			r.read(running, file)
		}
	})
	return nil
}

// Shutdown cancels calls of the next consumer and waits for them. The next start sends their
// records again.
func (r *fileReceiver) Shutdown(ctx context.Context) error {
	if r.cancel == nil { // not started
		return nil
	}
	r.cancel()
	r.running.Wait()
	r.cancel = nil
	err := errors.Join(r.watcher.Shutdown(ctx), r.rejected.close())
	r.telemetry.Shutdown()
	return err
}

// enqueue is the Handler of the Watcher.
func (r *fileReceiver) enqueue(_ context.Context, file *filewatch.File) error {
	r.queue.add(file)
	return filewatch.ErrPending
}

// polled is called after each poll of the Watcher.
func (r *fileReceiver) polled(unhandled int, gone []string) {
	for _, path := range gone {
		if file := r.queue.remove(path); file != nil {
			r.missing(file)
		}
	}
	if unhandled > 0 || r.queue.waiting().files > 0 {
		r.idle = 0
		return
	}
	// A file may have ended with an error since the Watcher counted: the next poll counts it.
	if r.idle++; r.idle != 2 {
		return
	}
	r.telemetry.logTotals(r.logger, r.config.Once)
	if r.config.Once {
		r.stopCollector()
	}
}

// missing is for a file that was removed before it was read.
func (r *fileReceiver) missing(file *filewatch.File) {
	r.telemetry.countFile(fileMissing)
	r.logger.Warn("File was removed before it was read", zap.String("path", file.Path), zap.Int64("bytes", file.Size))
	r.done(file, filewatch.ErrRemoved)
}

// done ends the work on a file. The Watcher must know before the queue does: see polled.
func (r *fileReceiver) done(file *filewatch.File, err error) {
	r.watcher.Done(context.Background(), file, err)
	r.queue.done(file)
}

// stopCollector sends the signal that ends a Collector in order.
func (r *fileReceiver) stopCollector() {
	process, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = process.Signal(syscall.SIGTERM)
	}
	if err != nil {
		r.logger.Error("Cannot stop the Collector; stop it yourself", zap.Error(err))
	}
}
