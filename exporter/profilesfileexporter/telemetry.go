// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilesfileexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
)

// telemetry holds the metrics of one exporter.
type telemetry struct {
	*metadata.TelemetryBuilder
	id       string
	instance metric.MeasurementOption // the id as an attribute
}

func newTelemetry(set exporter.Settings) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	id := set.ID.String()
	return &telemetry{TelemetryBuilder: builder, id: id, instance: metric.WithAttributes(attribute.String("exporter", id))}, nil
}

// with returns the attributes of a measurement: the exporter's id and another one.
func (t *telemetry) with(key, value string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("exporter", t.id), attribute.String(key, value))
}

// Reasons of errors that are not from writing files.
const (
	reasonConvert  = "convert"
	reasonTooLarge = "too_large"
)

// reasonOf returns the metric's reason for an error from writing files.
func reasonOf(err error) string {
	for _, known := range []struct {
		err    error
		reason string
	}{
		{segment.ErrInvalidRecord, "invalid_record"},
		{syscall.ENOSPC, "no_space"},
		{syscall.EDQUOT, "no_space"},
		{syscall.EROFS, "read_only"},
		{syscall.EMFILE, "descriptors"},
		{syscall.ENFILE, "descriptors"},
		{syscall.EIO, "io"},
		{fs.ErrPermission, "permission"},
		{fs.ErrNotExist, "removed"},
		{segment.ErrGone, "removed"},
	} {
		if errors.Is(err, known.err) {
			return known.reason
		}
	}
	return "other"
}

func (e *fileExporter) countErrors(reason string, n int) {
	e.telemetry.ExporterProfilesFileErrors.Add(context.Background(), int64(n), e.telemetry.with("reason", reason))
}

func (e *fileExporter) countRecord(raw, stored int64) {
	ctx := context.Background()
	e.telemetry.ExporterProfilesFileRecords.Add(ctx, 1, e.telemetry.instance)
	e.telemetry.ExporterProfilesFileUncompressedBytes.Add(ctx, raw, e.telemetry.instance)
	e.telemetry.ExporterProfilesFileWrittenBytes.Add(ctx, stored, e.telemetry.instance)
}

func (e *fileExporter) logFileClosed(f segment.ClosedFile) {
	e.telemetry.ExporterProfilesFileFiles.Add(context.Background(), 1, e.telemetry.with("reason", string(f.Reason)))
	e.logger.Info("Closed file",
		zap.String("path", f.Path),
		zap.String("reason", string(f.Reason)),
		zap.Strings("services", f.Summary.Services),
		zap.Strings("sample_types", f.Summary.SampleTypes),
		zap.Int("profiles", f.Summary.Profiles),
		zap.Int("samples", f.Summary.Samples),
		zap.Int("records", f.Records),
		zap.Int64("bytes", f.Size),
		zap.Int64("uncompressed_bytes", f.Raw),
	)
}

func (e *fileExporter) logFileRecovered(f segment.RecoveredFile) {
	outcome, message := "recovered", "Recovered incomplete file"
	fields := []zap.Field{zap.String("partial", f.Partial), zap.Int64("cut_bytes", f.Cut)}
	if f.Path == "" {
		outcome, message = "removed", "Removed incomplete file: no complete record"
	} else {
		fields = append(fields, zap.String("path", f.Path), zap.Int("records", f.Records),
			zap.Int64("bytes", f.Size), zap.Int("damaged_places", f.Damaged))
	}
	e.telemetry.ExporterProfilesFileRepairs.Add(context.Background(), 1, e.telemetry.with("outcome", outcome))
	e.logger.Info(message, fields...)
}

func (e *fileExporter) logFileRemoved(path string, size int64) {
	e.telemetry.ExporterProfilesFileRemovedFiles.Add(context.Background(), 1, e.telemetry.instance)
	e.logger.Debug("Removed old file", zap.String("path", path), zap.Int64("bytes", size))
}

// reportDropped is for an item of the queue that cannot be restored.
func (e *fileExporter) reportDropped(err error, size int) {
	e.countErrors(reasonConvert, 1)
	e.logger.Error("Dropped queued item", zap.Error(err), zap.Int("bytes", size))
}

// reportRejected counts and logs the rejections of a request once.
func (e *fileExporter) reportRejected(r *request) {
	if len(r.rejected.unreported) == 0 {
		return
	}
	for reason, n := range r.rejected.unreported {
		e.countErrors(reason, n)
	}
	r.rejected.unreported = nil
	e.logger.Error("Rejected profiles permanently", zap.Error(r.rejected.err("records or groups")),
		zap.String("format", e.config.Format), zap.Int("count", r.rejected.count))
}

// reportError is for errors that no caller gets.
func (e *fileExporter) reportError(err error) {
	e.countErrors(reasonOf(err), 1)
	fields := []zap.Field{zap.Error(err)}
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		fields = append(fields, zap.String("op", of.Op), zap.String("path", of.Path))
	}
	e.logger.Warn("File operation failed; will retry", fields...)
}
