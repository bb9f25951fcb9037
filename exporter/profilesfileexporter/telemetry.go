// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// count adds to a metric of this exporter.
func (e *fileExporter) count(of metric.Int64Counter, n int64, attributes ...attribute.KeyValue) {
	of.Add(context.Background(), n, e.instance, metric.WithAttributes(attributes...))
}

// Reasons of errors that are not from writing files.
const (
	reasonConvert = "convert"
)

// reasonOf returns the metric's reason for an error from writing files.
func reasonOf(err error) string {
	if _, isPanic := errors.AsType[*panics.Error](err); isPanic {
		return "panic"
	}
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
		{store.ErrGone, "removed"},
	} {
		if errors.Is(err, known.err) {
			return known.reason
		}
	}
	return "other"
}

// Troubles of writing, by name.
const (
	troubleFull     = "Disk is full"
	troubleReadOnly = "File system is read-only"
	troubleOther    = "Cannot write profiles"
)

var troubles = []string{troubleFull, troubleReadOnly, troubleOther}

func troubleOf(err error) string {
	switch reasonOf(err) {
	case "no_space":
		return troubleFull
	case "read_only":
		return troubleReadOnly
	}
	return troubleOther
}

func (e *fileExporter) countError(reason string) {
	e.count(e.telemetry.ExporterProfilesFileErrors, 1, attribute.String("reason", reason))
}

// countRecord counts a record. other is set if its group is beyond max_groups.
func (e *fileExporter) countRecord(record store.Record, stored int64, other bool) {
	e.count(e.telemetry.ExporterProfilesFileRecords, 1)
	e.count(e.telemetry.ExporterProfilesFileUncompressedBytes, int64(len(record.Data)))
	e.count(e.telemetry.ExporterProfilesFileWrittenBytes, stored)
	if !other {
		return
	}
	e.count(e.telemetry.ExporterProfilesFileOtherRecords, 1)
	e.logOther.Do(func() {
		e.logger.Warn("Reached max_groups; writing further groups to the group _other",
			zap.String("directory", e.config.Directory), zap.Int("max_groups", e.config.MaxGroups),
			zap.String("group", strings.Join(record.Group, "/")))
	})
}

// countAhead counts a record whose time is not plausible: the clock of its sender may be wrong.
func (e *fileExporter) countAhead(record store.Record) {
	e.count(e.telemetry.ExporterProfilesFileAheadRecords, 1)
	ends := time.Unix(0, int64(min(record.Entry.End, math.MaxInt64))).UTC()
	e.trouble.Warn("Profiles end more than 24 hours ahead; queries of their time do not find them",
		fmt.Errorf("profiles end at %s", ends.Format(time.RFC3339)), zap.String("group", strings.Join(record.Group, "/")))
}

// logFileClosed logs the first file at info, as a sign that files arrive, and the others at
// debug.
func (e *fileExporter) logFileClosed(f store.ClosedFile) {
	if e.uploader != nil {
		e.uploader.FileClosed()
	}
	e.count(e.telemetry.ExporterProfilesFileFiles, 1, attribute.String("reason", string(f.Reason)))
	level := zapcore.DebugLevel
	if !e.logClosed.Swap(true) {
		level = zapcore.InfoLevel
	}
	e.logger.Log(level, "Closed file",
		zap.String("path", f.Path),
		zap.String("reason", string(f.Reason)),
		zap.Strings("services", f.Services),
		zap.Strings("profile_types", f.ProfileTypes),
		zap.Strings("sample_types", f.SampleTypes),
		zap.Int("profiles", f.Profiles),
		zap.Int("samples", f.Samples),
		zap.Int("records", f.Records),
		zap.Int64("bytes", f.Size),
		zap.Int64("uncompressed_bytes", f.Raw),
	)
	if f.IndexError != nil {
		e.reportIndex(f.IndexError)
	}
	if f.JoinError != nil {
		e.trouble.Warn("Records of a file are not joined; it takes more space until it is compacted", f.JoinError,
			append(stackOf(f.JoinError), zap.String("directory", e.config.Directory))...)
	}
}

// reportIndex counts a file whose index is missing or incomplete, which readers read instead.
func (e *fileExporter) reportIndex(err error) {
	e.count(e.telemetry.ExporterProfilesFileIncompleteIndexes, 1)
	e.trouble.Warn("Index is missing or incomplete; reading takes longer", err, append(stackOf(err), zap.String("directory", e.config.Directory))...)
}

// stackOf is the field of a message about an error that was a panic.
func stackOf(err error) []zap.Field {
	if panicked, isPanic := errors.AsType[*panics.Error](err); isPanic {
		return []zap.Field{zap.ByteString("stack", panicked.Stack)}
	}
	return nil
}

func (e *fileExporter) logFileRecovered(f store.RecoveredFile) {
	outcome, message := "recovered", "Recovered incomplete file"
	fields := []zap.Field{zap.String("partial", f.Partial), zap.Int64("truncated_bytes", f.Truncated)}
	if f.Path == "" {
		outcome, message = "removed", "Removed incomplete file: no complete record"
	} else {
		fields = append(fields, zap.String("path", f.Path), zap.Int("records", f.Records),
			zap.Int64("bytes", f.Size))
		if e.uploader != nil {
			e.uploader.FileClosed()
		}
	}
	e.count(e.telemetry.ExporterProfilesFileRecoveredFiles, 1, attribute.String("outcome", outcome))
	e.logger.Info(message, fields...)
	if f.IndexError != nil {
		e.reportIndex(f.IndexError)
	}
}

func (e *fileExporter) logFileRemoved(path string, size int64) {
	e.count(e.telemetry.ExporterProfilesFileRemovedFiles, 1)
	if layout.IsDamaged(path) {
		e.logger.Info("Removed an old damaged file", zap.String("path", path), zap.Int64("bytes", size))
		return
	}
	if e.uploader != nil && e.uploader.Forget(path) {
		e.count(e.telemetry.ExporterProfilesFileDroppedFiles, 1)
		e.logger.Warn("Removed a file before it was uploaded; raise retention::max_total_size or max_files", zap.String("path", path), zap.Int64("bytes", size))
		return
	}
	e.logger.Debug("Removed old file", zap.String("path", path), zap.Int64("bytes", size))
}

// reportError is for errors that no caller gets.
func (e *fileExporter) reportError(err error) {
	e.countError(reasonOf(err))
	fields := append(stackOf(err), zap.String("directory", e.options.Directory))
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		fields = append(fields, zap.String("op", of.Op), zap.String("path", of.Path))
	}
	if trouble := troubleOf(err); trouble != troubleOther { // until a record is written
		e.trouble.Failed(trouble, err, fields...)
		return
	}
	e.trouble.Warn("File operation failed; will retry", err, fields...)
}
