// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilesfileexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/component/repeatlog"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/upload"
)

// fileExporter turns payloads into records and writes them with a store.Writer, which it owns.
type fileExporter struct {
	config    *Config
	id        component.ID
	options   store.Options
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	instance  metric.MeasurementOption // the id, as an attribute of all metrics
	marshaler pprofile.Marshaler
	logOther  sync.Once
	logClosed atomic.Bool // a closed file was logged at info
	trouble   *repeatlog.Reporter

	uploader *upload.Uploader // nil without object_storage
	interval time.Duration    // of looking for files to upload; 0 is the default
	waiting  atomic.Int64     // files to upload

	writer  *store.Writer // nil before start and after a failed start
	claim   *store.Claim  // that the directory is compacted; nil if it is not
	stop    context.CancelFunc
	tickers sync.WaitGroup
}

func newFileExporter(config *Config, set exporter.Settings) (*fileExporter, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	e := &fileExporter{
		config: config, id: set.ID, options: config.storeOptions(), logger: set.Logger, telemetry: telemetry, marshaler: &pprofile.ProtoMarshaler{}, trouble: repeatlog.New(set.Logger),
		instance: metric.WithAttributes(attribute.String("exporter", set.ID.String())),
	}
	if config.Format == formatJSON {
		e.marshaler = &pprofile.JSONMarshaler{}
	}
	e.options.RecordWritten = e.countRecord
	e.options.RecordAhead = e.countAhead
	e.options.FileClosed = e.logFileClosed
	e.options.FileRecovered = e.logFileRecovered
	e.options.FileRemoved = e.logFileRemoved
	e.options.Failed = e.reportError
	return e, nil
}

// start creates the directory if it is missing, and recovers incomplete files in it.
func (e *fileExporter) start(_ context.Context, host component.Host) error {
	e.trouble.Start(host)
	directory, err := filepath.Abs(e.config.Directory)
	if err != nil {
		return fmt.Errorf("directory %s: %w", e.config.Directory, err)
	}
	e.options.Directory = directory
	if e.config.ObjectStorage.HasValue() {
		if err := e.openUploader(e.config.ObjectStorage.Get()); err != nil {
			return fmt.Errorf("object_storage: %w", err)
		}
	}
	writer, err := store.OpenWriter(e.options)
	if err != nil {
		return fmt.Errorf("cannot open directory %s: %w; set exporters::%s::directory", e.config.Directory, err, e.id)
	}
	if e.config.Compact.HasValue() {
		if e.claim, err = store.ClaimDirectory(directory, store.Compacts); err != nil {
			return errors.Join(fmt.Errorf("%w: remove exporters::%s::compact, or write to another directory", err, e.id), writer.Close())
		}
	}
	e.writer = writer
	e.logger.Info("Writing profiles to files", zap.String("directory", directory), zap.String("format", e.config.Format))
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	e.tickers.Go(func() { e.every(ctx, e.options.TickInterval(), writer.Tick) })
	e.tickers.Go(func() { e.every(ctx, e.options.TickInterval(), writer.CloseDue) })
	e.tickers.Go(func() { e.every(ctx, store.MaintainInterval, writer.Maintain) })
	if e.uploader != nil {
		e.tickers.Go(func() { e.uploader.Run(ctx) })
	}
	if e.config.Compact.HasValue() {
		e.tickers.Go(func() { e.compact(ctx, e.config.Compact.Get()) })
	}
	return nil
}

// every calls do at each interval until ctx ends. A panic of do is reported, and the next interval comes.
func (e *fileExporter) every(ctx context.Context, interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := panics.Guarded(func() error { do(); return nil })(); err != nil {
				e.reportError(err)
			}
		}
	}
}

// shutdown closes the files. With an error, the next start recovers them.
func (e *fileExporter) shutdown(context.Context) error {
	if e.writer == nil {
		return nil
	}
	e.writer.EndSoon()
	e.stop()
	e.tickers.Wait()
	err := errors.Join(e.writer.Close(), e.claim.Close())
	if e.uploader != nil {
		e.logger.Info("Stopped uploading; the next start uploads the rest", zap.Int64("waiting_files", e.waiting.Load()))
	}
	e.telemetry.Shutdown()
	return err
}

// consume writes a record for each group of a payload, or several if one would be too large for readers. One that fails keeps no
// other from being written. A retryable error carries the Profiles that are not written, so that a retry does not write the
// others again.
func (e *fileExporter) consume(ctx context.Context, pd pprofile.Profiles) error {
	if e.writer == nil {
		return errors.New("exporter is not started")
	}
	if err := ctx.Err(); err != nil {
		// The caller retries, and would have its profiles written twice.
		return fmt.Errorf("not written: caller cancelled: %w", err)
	}
	pd, groups, err := groupsOf(pd, e.config.GroupBy)
	if err != nil {
		return e.reject([]error{e.rejection(reasonConvert, e.convertError(pd, err))})
	}
	var splitter *dictionary.Splitter // nil while one group is all of pd
	if len(groups) > 1 {
		splitter = dictionary.NewSplitter(pd)
	}
	var failures, rejections []error
	var failed []dictionary.Part
	for i := 0; i < len(groups); i++ {
		g, profiles := groups[i], pd
		if splitter != nil {
			profiles = splitter.Take(g.parts)
		}
		record, err := e.encode(g.names, profiles)
		if err == nil && e.isLarge(record.Data) {
			if halves := g.halves(pd); halves != nil {
				if splitter == nil {
					if pd, err = dictionary.ResolveStrings(pd); err != nil { // that marshalling has made
						return e.reject([]error{e.rejection(reasonConvert, e.convertError(pd, err))})
					}
					splitter = dictionary.NewSplitter(pd)
				}
				groups = slices.Replace(groups, i, i+1, halves...)
				i--
				continue
			}
		}
		if err == nil {
			err = e.write(record)
		}
		switch {
		case consumererror.IsPermanent(err):
			rejections = append(rejections, err)
		case err != nil:
			failures, failed = append(failures, err), append(failed, g.parts...)
		}
	}
	rejected := e.reject(rejections)
	if len(failures) == 0 {
		return rejected
	}
	err = failures[0]
	if len(failures) > 1 {
		err = fmt.Errorf("%d of %d records failed; first error: %w", len(failures), len(groups), err)
	}
	if len(e.config.GroupBy) == 0 {
		return err
	}
	if len(failures) < len(groups) {
		pd = splitter.Take(failed)
	}
	// Also if pd is all that failed: after retries, it can be a part of the caller's payload.
	return xconsumererror.NewProfiles(err, pd)
}

// encode makes the record of a group. The error is permanent.
func (e *fileExporter) encode(group []string, pd pprofile.Profiles) (store.Record, error) {
	entry, err := contents.Describe(pd)
	if err != nil {
		e.trouble.Warn("Profiles are not in the index; reading takes longer", err, zap.String("directory", e.options.Directory))
	}
	data, err := e.marshaler.MarshalProfiles(pd)
	if err != nil {
		err = e.convertError(pd, err)
		if len(group) > 0 {
			err = fmt.Errorf("group %s: %w", strings.Join(group, "/"), err)
		}
		return store.Record{}, e.rejection(reasonConvert, err)
	}
	return store.Record{Data: data, Group: group, Entry: entry}, nil
}

// isLarge reports whether a record takes more memory than queries may have for it. Without groups, files are for a profiles_file receiver,
// which reads them whole: dividing them would take time and memory of a sidecar.
func (e *fileExporter) isLarge(data []byte) bool {
	const maxPerByte = 64 // no message takes more for each of its bytes
	return len(e.config.GroupBy) > 0 && len(data) > segment.MaxRecordMemory/maxPerByte && store.DecodedSize(e.options.Format, data) > segment.MaxRecordMemory
}

// write writes a record. The error is permanent if a retry cannot succeed.
func (e *fileExporter) write(record store.Record) error {
	err := e.writer.Append(record)
	if errors.Is(err, segment.ErrInvalidRecord) || errors.Is(err, layout.ErrNotDirectory) {
		return e.rejection(reasonOf(err), err)
	}
	if err != nil {
		e.countError(reasonOf(err))
		e.trouble.Failed(troubleOf(err), err, zap.String("directory", e.options.Directory),
			zap.String("waits", "profiles of the sender, which gets a retryable error"))
		return err
	}
	for _, message := range troubles {
		e.trouble.Over(message, "Writing profiles again", zap.String("directory", e.options.Directory))
	}
	return nil
}

// rejection counts an error and makes it permanent.
func (e *fileExporter) rejection(reason string, err error) error {
	e.countError(reason)
	return consumererror.NewPermanent(err)
}

// reject logs the rejections of a payload, and returns their error.
func (e *fileExporter) reject(rejections []error) error {
	if len(rejections) == 0 {
		return nil
	}
	err := rejections[0]
	if len(rejections) > 1 {
		err = consumererror.NewPermanent(fmt.Errorf("%d groups rejected; first error: %w", len(rejections), errors.Unwrap(err)))
	}
	e.logger.Error("Rejected profiles permanently", zap.Error(err), zap.String("format", e.config.Format), zap.Int("count", len(rejections)))
	return err
}

func (e *fileExporter) convertError(pd pprofile.Profiles, err error) error {
	return fmt.Errorf("convert %d profiles to %s: %w", pd.ProfileCount(), e.config.Format, err)
}
