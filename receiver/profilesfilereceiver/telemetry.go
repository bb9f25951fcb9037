// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/profilesfilereceiver/internal/filewatch"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/profilesfilereceiver/internal/metadata"
)

// The values of the attribute outcome of files.
const (
	fileSuccess    = "success"
	fileDamaged    = "damaged"
	fileMissing    = "missing"
	fileUnreadable = "unreadable" // retried
)

// The values of the attribute outcome of records.
const (
	recordAccepted = "accepted"
	recordRetried  = "retried"
	recordRejected = "rejected"
)

// telemetry is the metrics of one receiver.
type telemetry struct {
	*metadata.TelemetryBuilder
	receiver attribute.KeyValue

	mu     sync.Mutex
	totals map[string]int64 // of files and records since the start, by outcome
}

func newTelemetry(set receiver.Settings, w *filewatch.Watcher) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	t := &telemetry{TelemetryBuilder: builder, receiver: attribute.String("receiver", set.ID.String()), totals: map[string]int64{}}
	of := metric.WithAttributes(t.receiver)
	observe := func(value func(filewatch.Backlog) int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(value(w.Backlog()), of)
			return nil
		}
	}
	return t, errors.Join(
		builder.RegisterReceiverProfilesFileWaitingFilesCallback(observe(func(b filewatch.Backlog) int64 { return int64(b.Files) })),
		builder.RegisterReceiverProfilesFileWaitingBytesCallback(observe(func(b filewatch.Backlog) int64 { return b.Bytes })),
		builder.RegisterReceiverProfilesFileOldestAgeCallback(func(_ context.Context, o metric.Float64Observer) error {
			age := 0.0
			if oldest := w.Backlog().Oldest; !oldest.IsZero() {
				age = max(0, time.Since(oldest).Seconds())
			}
			o.Observe(age, of)
			return nil
		}))
}

func (t *telemetry) countFile(outcome string)   { t.count(t.ReceiverProfilesFileFiles, outcome) }
func (t *telemetry) countRecord(outcome string) { t.count(t.ReceiverProfilesFileRecords, outcome) }

func (t *telemetry) count(counter metric.Int64Counter, outcome string) {
	t.mu.Lock()
	t.totals[outcome]++
	t.mu.Unlock()
	counter.Add(context.Background(), 1, metric.WithAttributes(t.receiver, attribute.String("outcome", outcome)))
}

func (t *telemetry) countRemovedRejected() {
	t.ReceiverProfilesFileRemovedRejectedFiles.Add(context.Background(), 1, metric.WithAttributes(t.receiver))
}

// logTotals says that all files were read. That is news if it is the task.
func (t *telemetry) logTotals(logger *zap.Logger, once bool) {
	log := logger.Debug
	if once {
		log = logger.Info
	}
	log("Read all files", t.fields()...)
}

// fields are the totals since the start.
func (t *telemetry) fields() []zap.Field {
	t.mu.Lock()
	defer t.mu.Unlock()
	return []zap.Field{
		zap.Int64("files", t.totals[fileSuccess]+t.totals[fileDamaged]), zap.Int64("damaged_files", t.totals[fileDamaged]),
		zap.Int64("records", t.totals[recordAccepted]), zap.Int64("rejected_records", t.totals[recordRejected]),
	}
}
