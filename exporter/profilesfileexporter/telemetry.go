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

// telemetry is what one exporter counts with.
type telemetry struct {
	*metadata.TelemetryBuilder
	instance attribute.KeyValue
	plain    metric.MeasurementOption // of what has no other attributes
}

func newTelemetry(set exporter.Settings) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	t := &telemetry{TelemetryBuilder: builder, instance: attribute.String("exporter", set.ID.String())}
	t.plain = t.with()
	return t, nil
}

// with makes what goes with everything that is counted: which exporter it is of, and
// these attributes.
func (t *telemetry) with(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append([]attribute.KeyValue{t.instance}, attributes...)...))
}

// Reasons of errors, as metadata.yaml lists them.
const (
	reasonNoSpace       = "no_space"
	reasonReadOnly      = "read_only"
	reasonPermission    = "permission"
	reasonDescriptors   = "descriptors"
	reasonIO            = "io"
	reasonRemoved       = "removed"
	reasonConvert       = "convert"
	reasonInvalidRecord = "invalid_record"
	reasonTooLarge      = "too_large"
	reasonOther         = "other"
)

// reasonOf says what kind of error it is.
func reasonOf(err error) string {
	if _, ok := errors.AsType[*segment.InvalidRecordError](err); ok {
		return reasonInvalidRecord
	}
	for _, known := range []struct {
		err    error
		reason string
	}{
		{syscall.ENOSPC, reasonNoSpace},
		{syscall.EDQUOT, reasonNoSpace},
		{syscall.EROFS, reasonReadOnly},
		{syscall.EMFILE, reasonDescriptors},
		{syscall.ENFILE, reasonDescriptors},
		{syscall.EIO, reasonIO},
		{fs.ErrPermission, reasonPermission},
		{fs.ErrNotExist, reasonRemoved},
		{segment.ErrGone, reasonRemoved},
	} {
		if errors.Is(err, known.err) {
			return known.reason
		}
	}
	return reasonOther
}

func (e *fileExporter) count(reason string) { e.countMany(reason, 1) }

func (e *fileExporter) countMany(reason string, n int) {
	e.telemetry.ExporterProfilesFileErrors.Add(context.Background(), int64(n), e.telemetry.with(attribute.String("reason", reason)))
}

func (e *fileExporter) tellAppended(raw, stored int64) {
	ctx := context.Background()
	e.telemetry.ExporterProfilesFileRecords.Add(ctx, 1, e.telemetry.plain)
	e.telemetry.ExporterProfilesFileUncompressedBytes.Add(ctx, raw, e.telemetry.plain)
	e.telemetry.ExporterProfilesFileWrittenBytes.Add(ctx, stored, e.telemetry.plain)
}

// place says which directory a file is in.
func (e *fileExporter) place(group string) []zap.Field {
	fields := []zap.Field{zap.String("directory", e.config.Directory)}
	if group != "" {
		fields = append(fields, zap.String("group", group))
	}
	return fields
}

func (e *fileExporter) tellFinished(f segment.Finished) {
	e.telemetry.ExporterProfilesFileFiles.Add(context.Background(), 1, e.telemetry.with(attribute.String("reason", string(f.Reason))))
	e.logger.Info("Finished a file of profiles", append(e.place(f.Group),
		zap.String("file", f.Name),
		zap.String("reason", string(f.Reason)),
		zap.Int("profiles", f.Count.Profiles),
		zap.Int("samples", f.Count.Samples),
		zap.Int("records", f.Records),
		zap.Int64("bytes", f.Size),
		zap.Int64("uncompressed_bytes", f.Raw),
	)...)
}

func (e *fileExporter) tellRepaired(r segment.Repaired) {
	fields := append(e.place(r.Group), zap.String("partial", r.Partial), zap.Int64("cut_bytes", r.Cut))
	if r.Name == "" {
		e.telemetry.ExporterProfilesFileRepairs.Add(context.Background(), 1, e.telemetry.with(attribute.String("outcome", "removed")))
		e.logger.Info("Removed a leftover file without a whole record", fields...)
		return
	}
	e.telemetry.ExporterProfilesFileRepairs.Add(context.Background(), 1, e.telemetry.with(attribute.String("outcome", "finished")))
	e.logger.Info("Finished a leftover file", append(fields,
		zap.String("file", r.Name),
		zap.Int("records", r.Records),
		zap.Int64("bytes", r.Size),
		zap.Int("damaged_places", r.Damaged),
	)...)
}

func (e *fileExporter) tellRemoved(r segment.Removed) {
	e.telemetry.ExporterProfilesFileRemovedFiles.Add(context.Background(), 1, e.telemetry.plain)
	e.logger.Debug("Removed an old file", append(e.place(r.Group), zap.String("file", r.Name), zap.Int64("bytes", r.Size))...)
}

// tellDropped is for what is lost for good where nobody is told. bytes is how many were looked at, if that is known.
func (e *fileExporter) tellDropped(err error, n, bytes int) {
	e.countMany(reasonConvert, n)
	fields := append(e.place(""), zap.Error(err))
	if bytes > 0 {
		fields = append(fields, zap.Int("bytes", bytes))
	}
	e.logger.Error("Dropped profiles that cannot be made records", fields...)
}

// tellRefused counts and logs, once, what of a request is refused for good.
func (e *fileExporter) tellRefused(r *request) {
	if len(r.refused.untold) == 0 {
		return
	}
	for reason, n := range r.refused.untold {
		e.countMany(reason, n)
	}
	r.refused.untold = nil
	e.logger.Error("Refused profiles for good", append(e.place(""), zap.Error(r.refused.err("records or groups")))...)
}

func (e *fileExporter) tellTrouble(err error) {
	e.count(reasonOf(err))
	e.logger.Warn("Trouble with files of profiles", append(e.place(""), zap.Error(err))...)
}
