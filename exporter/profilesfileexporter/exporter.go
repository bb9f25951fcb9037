// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilesfileexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// fileExporter turns payloads into records and writes them with a recordfile.Writer, which
// it owns.
type fileExporter struct {
	config    *Config
	id        component.ID
	options   recordfile.Options
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	instance  metric.MeasurementOption // the id, as an attribute of all metrics
	marshal   marshalFunc
	logOther  sync.Once
	logClosed atomic.Bool // a closed file was logged at info
	logIndex  sync.Once

	writer  *recordfile.Writer // nil before start and after a failed start
	stop    context.CancelFunc
	tickers sync.WaitGroup
}

func newFileExporter(config *Config, set exporter.Settings) (*fileExporter, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	e := &fileExporter{
		config: config, id: set.ID, options: config.storeOptions(), logger: set.Logger, telemetry: telemetry,
		marshal:  marshalerOf(config.Format),
		instance: metric.WithAttributes(attribute.String("exporter", set.ID.String())),
	}
	e.options.RecordWritten = e.countRecord
	e.options.FileClosed = e.logFileClosed
	e.options.FileRecovered = e.logFileRecovered
	e.options.FileRemoved = e.logFileRemoved
	e.options.IndexFailed = e.logIndexFailed
	e.options.Failed = e.reportError
	return e, nil
}

// start creates the directory if it is missing, and recovers incomplete files in it.
func (e *fileExporter) start(context.Context, component.Host) error {
	writer, err := recordfile.OpenWriter(e.options)
	if err != nil {
		return fmt.Errorf("cannot open directory %s: %w; set exporters::%s::directory", e.config.Directory, err, e.id)
	}
	e.writer = writer
	directory, err := filepath.Abs(e.config.Directory)
	if err != nil {
		directory = e.config.Directory
	}
	e.logger.Info("Writing profiles to files", zap.String("directory", directory), zap.String("format", e.config.Format))
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	e.tickers.Go(func() { every(ctx, writer.TickInterval(), writer.Tick) })
	e.tickers.Go(func() { every(ctx, recordfile.MaintainInterval, writer.Maintain) })
	return nil
}

func every(ctx context.Context, interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

// shutdown closes the files. With an error, the next start recovers them.
func (e *fileExporter) shutdown(context.Context) error {
	if e.writer == nil {
		return nil
	}
	e.stop()
	e.tickers.Wait()
	err := e.writer.Close()
	e.telemetry.Shutdown()
	return err
}

// consume writes the records of a payload. One that fails keeps no other from being
// written. A retryable error carries the Profiles that are not written, so that a retry does not
// write the others again.
func (e *fileExporter) consume(ctx context.Context, pd pprofile.Profiles) error {
	if e.writer == nil {
		return errors.New("exporter is not started")
	}
	if err := ctx.Err(); err != nil {
		// The caller retries, and would have its profiles written twice.
		return fmt.Errorf("not written: caller cancelled: %w", err)
	}
	profiles := pd.ProfileCount()
	o := outcome{failed: unwritten{}}
	if err := groupsOf(pd, e.config.GroupBy, func(g group) { e.writeGroup(g, &o) }); err != nil {
		o.reject(reasonConvert, e.convertError(profiles, err))
	}
	e.reportRejected(&o)
	return o.err(pd)
}

// writeGroup writes the records of a group.
func (e *fileExporter) writeGroup(g group, o *outcome) {
	profiles := g.profiles.ProfileCount()
	err := e.marshal(g.profiles, func(r record) {
		if r.data == nil {
			o.empty++
			e.count(e.telemetry.ExporterProfilesFileEmptyProfiles, int64(len(r.converted.Profiles)))
			return
		}
		err := e.writer.Append(recordfile.Record{Data: r.data, Group: g.names, Type: r.fileType, Samples: r.samples, Summaries: r.summaries})
		switch {
		case err == nil:
			o.written++
		case errors.Is(err, recordfile.ErrInvalidRecord), errors.Is(err, recordfile.ErrNotDirectory):
			o.reject(reasonOf(err), err)
		default:
			e.countErrors(reasonOf(err), 1)
			o.fail(g, r, err)
		}
	})
	if err == nil {
		return
	}
	err = e.convertError(profiles, err)
	if len(g.names) > 0 {
		err = fmt.Errorf("group %s: %w", strings.Join(g.names, "/"), err)
	}
	o.reject(reasonConvert, err)
}

func (e *fileExporter) convertError(profiles int, err error) error {
	return fmt.Errorf("convert %d profiles to %s: %w", profiles, e.config.Format, err)
}
