// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilesfileexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
)

// fileExporter turns payloads into requests and writes their records with a
// segment.Writer, which it owns.
type fileExporter struct {
	config    *Config
	id        component.ID
	options   segment.Options
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	instance  metric.MeasurementOption // the id, as an attribute of all metrics
	marshal   marshalFunc

	writer  *segment.Writer // nil before start and after a failed start
	stop    context.CancelFunc
	tickers sync.WaitGroup
}

func newFileExporter(config *Config, set exporter.Settings) (*fileExporter, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	e := &fileExporter{
		config: config, id: set.ID, options: config.segmentOptions(), logger: set.Logger, telemetry: telemetry,
		marshal:  marshalerOf(config.Format),
		instance: metric.WithAttributes(attribute.String("exporter", set.ID.String())),
	}
	e.options.RecordWritten = e.countRecord
	e.options.FileClosed = e.logFileClosed
	e.options.FileRecovered = e.logFileRecovered
	e.options.FileRemoved = e.logFileRemoved
	e.options.Failed = e.reportError
	return e, nil
}

// start creates the directory if it is missing, and recovers incomplete files in it.
func (e *fileExporter) start(context.Context, component.Host) error {
	writer, err := segment.OpenWriter(e.options)
	if err != nil {
		return fmt.Errorf("cannot open directory %s: %w; set exporters::%s::directory", e.config.Directory, err, e.id)
	}
	e.writer = writer
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	e.tickers.Go(func() { every(ctx, writer.TickInterval(), writer.Tick) })
	e.tickers.Go(func() { every(ctx, segment.MaintainInterval, writer.Maintain) })
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

// request converts a payload to records. An error is permanent, and concerns all of it.
func (e *fileExporter) request(_ context.Context, pd pprofile.Profiles) (xexporterhelper.Request, error) {
	r := &request{}
	err := e.convert(r, pd)
	if err == nil && len(r.pending) == 0 {
		err = r.rejected.err("groups")
	}
	if err != nil {
		e.countErrors(reasonConvert, 1)
		return nil, err
	}
	queue := e.config.SendingQueue
	if !queue.HasValue() {
		return r, nil
	}
	// No queue can ever accept it, but the error of a full queue would make the client retry.
	if size := queue.Get().QueueSize; int64(r.size) > size {
		e.countErrors(reasonTooLarge, 1)
		return nil, fmt.Errorf("payload of %d bytes exceeds sending_queue::queue_size (%d)", r.size, size)
	}
	if !queue.Get().WaitForResult {
		e.reportRejected(r) // the queue stores the other records only
	}
	return r, nil
}

// convert adds the records of pd to the request, and the groups and pprofs that cannot be
// converted to its rejections. An error concerns all of pd.
func (e *fileExporter) convert(r *request, pd pprofile.Profiles) error {
	explain := func(profiles int, err error) error {
		return fmt.Errorf("convert %d profiles to %s: %w", profiles, e.config.Format, err)
	}
	profiles := pd.ProfileCount()
	err := groupsOf(pd, e.config.GroupBy, func(g group) error {
		profiles := g.profiles.ProfileCount()
		err := e.marshal(g.profiles, func(data []byte, summary segment.Summary) {
			r.add(segment.Record{Data: data, Group: g.names, Content: e.options.Format.Content, Summary: summary})
		})
		if err != nil {
			err = explain(profiles, err)
			if len(g.names) > 0 {
				err = fmt.Errorf("group %s: %w", strings.Join(g.names, "/"), err)
			}
			r.rejected.add(reasonConvert, err)
		}
		return nil
	})
	if err != nil {
		return explain(profiles, err)
	}
	return nil
}

// consume writes the pending records of a request. After a retryable error a record stays
// pending; after a permanent one it is rejected.
func (e *fileExporter) consume(ctx context.Context, req xexporterhelper.Request) error {
	if e.writer == nil {
		return errors.New("exporter is not started")
	}
	if err := ctx.Err(); err != nil {
		// The caller retries, and would have its profiles written twice.
		return fmt.Errorf("not written: caller cancelled: %w", err)
	}
	r := req.(*request)
	var first error
	all := len(r.pending)
	r.pending = slices.DeleteFunc(r.pending, func(record segment.Record) bool {
		err := e.writer.Append(record)
		switch {
		case err == nil:
			return true
		case errors.Is(err, segment.ErrInvalidRecord), errors.Is(err, segment.ErrNotDirectory):
			r.rejected.add(reasonOf(err), err)
			return true
		}
		e.countErrors(reasonOf(err), 1)
		if first == nil {
			first = err
		}
		return false
	})
	switch failed := len(r.pending); {
	case failed > 1:
		return fmt.Errorf("%d of %d records failed; first error: %w", failed, all, first)
	case failed == 1:
		return first
	}
	e.reportRejected(r) // not before: until all is written, the caller may retry the payload
	if err := r.rejected.err("records or groups"); err != nil {
		return consumererror.NewPermanent(err)
	}
	return nil
}
