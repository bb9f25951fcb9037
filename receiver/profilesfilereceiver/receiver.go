// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/profilesfilereceiver/internal/filewatch"
)

// quietTime is how long a file of another program must not have changed to be complete.
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
	archive  archive.Options
	slots    *semaphore.Weighted // records in progress
	inFlight *budget.Budget      // their bytes, and those of the record that is translated
	// ingester translates records in other formats.
	ingester       *ingest.Ingester
	pathAttributes pathAttributes
	rejected       rejected
	position       position
	idle           int // polls in a row without anything to read
}

func newReceiver(set receiver.Settings, config *Config, next xconsumer.Profiles) (*fileReceiver, error) {
	r := &fileReceiver{
		config: config, id: set.ID, logger: set.Logger, next: next,
		slots: semaphore.NewWeighted(int64(config.Concurrency)), inFlight: budget.New(int64(config.MaxInFlight)),
		// A reader takes up to three times the size of a record. Records in progress are counted in inFlight, which may decode one
		// that takes all of it.
		archive: archive.Options{MaxMemory: 4 * int64(config.MaxInFlight), MaxRecord: int64(config.MaxInFlight) / 8, Setting: "max_in_flight"},
	}
	r.ingester = r.newIngester(set)
	r.pathAttributes = pathAttributes{expression: regexp.MustCompile(config.PathAttributes), logger: set.Logger}
	var reportErr, telemetryErr error
	r.obsreport, reportErr = receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: set.ID, Transport: "file", ReceiverCreateSettings: set})
	r.watcher = r.newWatcher()
	r.telemetry, telemetryErr = newTelemetry(set, r.watcher)
	r.rejected = rejected{config: config.Rejected, logger: set.Logger, telemetry: r.telemetry}
	return r, errors.Join(reportErr, telemetryErr)
}

// newWatcher returns the Watcher of the receiver, which skips the directories that it writes to.
func (r *fileReceiver) newWatcher() *filewatch.Watcher {
	watch := r.config.Watch
	watch.Exclude = slices.Clone(watch.Exclude)
	for _, directory := range []string{r.config.MoveTo, r.config.Rejected.Directory} {
		if directory != "" {
			watch.Exclude = append(watch.Exclude, escapeGlob.Replace(filepath.ToSlash(filepath.Clean(directory)))+"/**")
		}
	}
	w := filewatch.New(watch, r.read, r.logger)
	w.StartAtEnd = r.config.StartAt == startAtEnd
	w.QuietTime = quietTime
	w.Polled, w.Missing = r.polled, r.reportMissing
	return w
}

var escapeGlob = strings.NewReplacer("*", "\\*", "?", "\\?", "[", "\\[", "{", "\\{", "\\", "\\\\")

// Start starts to read.
func (r *fileReceiver) Start(ctx context.Context, host component.Host) error {
	err := r.watcher.Start(ctx, host, r.id)
	if err == nil && r.config.Once {
		r.position.start(r.logPosition)
	}
	return err
}

// Shutdown cancels calls of the next consumer and waits for them. The next start sends their
// records again.
func (r *fileReceiver) Shutdown(ctx context.Context) error {
	r.position.end()
	err := errors.Join(r.watcher.Shutdown(ctx), r.rejected.close())
	r.telemetry.Shutdown()
	return err
}

// polled is called after each poll of the Watcher.
func (r *fileReceiver) polled(unhandled int) {
	if r.config.AfterRead != afterReadKeep {
		if err := r.watcher.RemoveEmpty(); err != nil {
			r.logger.Warn("Cannot remove empty directories; will retry", zap.String("path", r.config.Watch.Directory), zap.Error(err))
		}
	}
	if unhandled > 0 || r.watcher.Backlog().Files > 0 {
		r.idle = 0
		return
	}
	// Two polls, since the first one may come before the Collector handles signals.
	if r.idle++; r.idle != 2 {
		return
	}
	r.telemetry.logTotals(r.logger, r.config.Once)
	if r.config.Once {
		r.stopCollector()
	}
}

// maxLoggedPaths is how many removed files a message names.
const maxLoggedPaths = 100

// reportMissing is for files that were removed before they were read. It logs one message, since the Collector leaves out
// most of equal ones.
func (r *fileReceiver) reportMissing(files []*filewatch.File) {
	var paths []string
	bytes := int64(0)
	for _, file := range files {
		r.telemetry.countFile(fileMissing)
		bytes += file.Size
		if len(paths) < maxLoggedPaths {
			paths = append(paths, file.Path)
		}
	}
	r.logger.Warn("Files were removed before they were read", zap.Int("files", len(files)), zap.Int64("bytes", bytes), zap.Strings("paths", paths))
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
