// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/bucket"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/upload"
)

// openUploader makes the uploader. Retention then keeps files that wait for it longer than max_age.
func (e *fileExporter) openUploader(s *ObjectStorageConfig) error {
	var parquet *upload.Parquet
	if e.config.Parquet.HasValue() {
		parquet = &upload.Parquet{MaxAge: e.config.Parquet.Get().Retention.MaxAge, Uploaded: func(string, int64) { e.countParquet("uploaded", 1) }}
	}
	uploader, err := upload.New(upload.Options{
		Parquet:   parquet,
		Location:  bucket.Location{Endpoint: s.Endpoint, Region: s.Region, Bucket: s.Bucket, Prefix: s.Prefix},
		Directory: e.options.Directory, Timeout: s.Timeout, MaxAge: s.Retention.MaxAge, Interval: e.interval,
		Uploaded: e.countUpload, Removed: e.countRemovedObject, Failed: e.reportUploadError, Waiting: func(n int) { e.waiting.Store(int64(n)) },
	})
	if err != nil {
		return err
	}
	e.uploader, e.options.Keep = uploader, uploader.Waits
	return e.telemetry.RegisterExporterProfilesFileWaitingUploadsCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(e.waiting.Load(), e.instance)
		return nil
	})
}

func (e *fileExporter) countUpload(path string, bytes int64) {
	e.count(e.telemetry.ExporterProfilesFileUploadedFiles, 1)
	e.count(e.telemetry.ExporterProfilesFileUploadedBytes, bytes)
	e.logger.Debug("Uploaded file", zap.String("path", path), zap.Int64("bytes", bytes))
	e.trouble.Over(troubleUpload, "Uploading files again", zap.Int64("waiting_files", e.waiting.Load()))
}

func (e *fileExporter) countRemovedObject(path string) {
	e.count(e.telemetry.ExporterProfilesFileRemovedObjects, 1)
	e.logger.Debug("Removed old object", zap.String("path", path))
}

const troubleUpload = "Upload failed; will retry"

// reportUploadError logs a failure. The file stays in the directory.
func (e *fileExporter) reportUploadError(err error, after time.Duration) {
	e.count(e.telemetry.ExporterProfilesFileUploadFailures, 1)
	if _, isConflict := errors.AsType[*bucket.ConflictError](err); isConflict {
		e.logger.Error("Cannot upload file", zap.Error(err))
		return
	}
	e.trouble.Failed(troubleUpload, err,
		append(stackOf(err), zap.Duration("after", after.Round(time.Millisecond)), zap.Int64("waiting_files", e.waiting.Load()))...)
}
