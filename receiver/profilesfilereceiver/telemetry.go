// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/filewatch"
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

	files, damaged, accepted, rejected atomic.Int64 // since the start
}

func newTelemetry(set receiver.Settings, w *filewatch.Watcher) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	t := &telemetry{TelemetryBuilder: builder, receiver: attribute.String("receiver", set.ID.String())}
	of := metric.WithAttributes(t.receiver)
	return t, errors.Join(
		builder.RegisterReceiverProfilesFileWaitingFilesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(w.Backlog().Files), of)
			return nil
		}),
		builder.RegisterReceiverProfilesFileWaitingBytesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(w.Backlog().Bytes, of)
			return nil
		}),
		builder.RegisterReceiverProfilesFileOldestAgeCallback(func(_ context.Context, o metric.Float64Observer) error {
			age := 0.0
			if oldest := w.Backlog().Oldest; !oldest.IsZero() {
				age = max(0, time.Since(oldest).Seconds())
			}
			o.Observe(age, of)
			return nil
		}))
}

func (t *telemetry) countFile(outcome string) {
	switch outcome {
	case fileSuccess:
		t.files.Add(1)
	case fileDamaged:
		t.files.Add(1)
		t.damaged.Add(1)
	}
	t.ReceiverProfilesFileFiles.Add(context.Background(), 1, metric.WithAttributes(t.receiver, attribute.String("outcome", outcome)))
}

func (t *telemetry) countRecord(outcome string) {
	switch outcome {
	case recordAccepted:
		t.accepted.Add(1)
	case recordRejected:
		t.rejected.Add(1)
	}
	t.ReceiverProfilesFileRecords.Add(context.Background(), 1, metric.WithAttributes(t.receiver, attribute.String("outcome", outcome)))
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
	log("Read all files",
		zap.Int64("files", t.files.Load()), zap.Int64("damaged_files", t.damaged.Load()),
		zap.Int64("records", t.accepted.Load()), zap.Int64("rejected_records", t.rejected.Load()))
}
