// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package files reads pprof profiles from files: the file section of the receiver.
//
// A file that the next consumer rejects temporarily is retried until it is accepted, and
// the following files wait.
package files

import (
	"context"
	"errors"
	"io"
	"math"
	"time"

	"github.com/cenkalti/backoff/v7"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/bytesize"
	"github.com/otelcol-profiles/otelcol-profiles/internal/filewatch"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/strictconfig"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// Config is the file section.
type Config struct {
	Watch filewatch.Config `mapstructure:",squash"`

	// MaxDecompressedSize limits the size of a profile, after all layers of compression
	// are removed, and of its file. Default: 64MiB.
	MaxDecompressedSize bytesize.Size `mapstructure:"max_decompressed_size"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{Watch: filewatch.DefaultConfig(), MaxDecompressedSize: 64 * bytesize.MiB}
}

// Validate checks all keys.
func (c *Config) Validate() error {
	var checks strictconfig.Checks
	c.Watch.Check(&checks)
	checks.That(c.MaxDecompressedSize > 0 && c.MaxDecompressedSize <= ingest.MaxPayload, "max_decompressed_size", c.MaxDecompressedSize,
		"above 0 and at most %v", ingest.MaxPayload)
	return checks.Err()
}

// profileTypeGroup is the named group of path_attributes that sets profile.type, and
// no attribute of the resource.
const profileTypeGroup = "profile.type"

// The values of the attribute outcome of receiver_pprof_files.
const (
	outcomeSuccess    = "success"
	outcomeUnreadable = "unreadable" // retried
	outcomePanic      = "panic"      // retried
	outcomeTooLarge   = "too_large"
	outcomeRejected   = "rejected" // by the next consumer
	outcomeMalformed  = "malformed"
)

// Settings are those of a Reader.
type Settings struct {
	ID                 component.ID
	Config             Config
	ResourceAttributes map[string]string
	Logger             *zap.Logger
	Metrics            *metadata.Telemetry
}

// Reader reads files from Start to Shutdown.
type Reader struct {
	*filewatch.Watcher
	Settings

	// Retry is the backoff while the next consumer rejects a file temporarily.
	Retry backoff.ExponentialBackOff

	ingester *ingest.Ingester
	inFlight *ingest.InFlight
}

// New returns a Reader that passes profiles to the ingester.
func New(set Settings, ingester *ingest.Ingester) (_ *Reader, err error) {
	r := &Reader{
		Settings: set,
		Retry: backoff.ExponentialBackOff{
			InitialInterval: time.Second, MaxInterval: 30 * time.Second,
			RandomizationFactor: backoff.DefaultRandomizationFactor, Multiplier: backoff.DefaultMultiplier,
		},
		ingester: ingester,
		// Files are read one at a time, so none waits for another.
		inFlight: ingest.NewInFlight(math.MaxInt64, 0),
	}
	r.Watcher, err = filewatch.New(set.Config.Watch, r.handle, set.Logger)
	return r, err
}

// Start starts to read.
func (r *Reader) Start(ctx context.Context, host component.Host) error {
	return r.Watcher.Start(ctx, host, r.ID)
}

// handle ingests a file and counts the outcome.
func (r *Reader) handle(ctx context.Context, file *filewatch.File) error {
	err := r.ingest(ctx, file)
	if _, panicked := errors.AsType[*ingest.PanicError](err); panicked {
		err = &filewatch.RetryError{Err: err}
	}
	if err != nil && ctx.Err() != nil || errors.Is(err, filewatch.ErrChanged) {
		return err
	}
	r.Metrics.ReceiverPprofFiles.Add(context.WithoutCancel(ctx), 1, r.Metrics.Attributes(attribute.String("outcome", outcomeOf(err))))
	return err
}

func outcomeOf(err error) string {
	_, panicked := errors.AsType[*ingest.PanicError](err)
	_, retry := errors.AsType[*filewatch.RetryError](err)
	_, pipeline := errors.AsType[*ingest.PipelineError](err)
	_, tooLarge := errors.AsType[*pproftranslator.LimitError](err)
	switch {
	case err == nil:
		return outcomeSuccess
	case panicked:
		return outcomePanic
	case retry:
		return outcomeUnreadable
	case pipeline:
		return outcomeRejected
	case tooLarge:
		return outcomeTooLarge
	}
	return outcomeMalformed
}

func (r *Reader) ingest(ctx context.Context, file *filewatch.File) (err error) {
	defer ingest.Recover(r.Logger, &err, zap.String("path", file.Path))
	held := r.inFlight.Reserve()
	defer held.Release()
	limit := int(r.Config.MaxDecompressedSize)
	if file.Size > int64(limit) {
		return &pproftranslator.LimitError{What: "size in bytes", Limit: int64(limit), Got: file.Size}
	}
	content, err := file.ReadWith(func(content io.Reader) ([]byte, error) {
		all, err := ingest.ReadAll(ctx, content, file.Size, held)
		if err == nil && int64(len(all)) != file.Size {
			err = filewatch.ErrChanged
		}
		return all, err
	})
	if err != nil {
		return err
	}
	payload, err := ingest.Decompress(ctx, content, limit, held)
	if err != nil {
		return err
	}
	profileType := file.Attributes[profileTypeGroup]
	delete(file.Attributes, profileTypeGroup)
	return r.send(ctx, file.Path, ingest.Payload{
		Data:        payload,
		Resource:    ingest.NewResource(r.ResourceAttributes, file.Attributes),
		ProfileType: profileType,
		Modified:    pcommon.NewTimestampFromTime(file.Modified),
	})
}

// send retries until the next consumer accepts the payload or rejects it permanently.
func (r *Reader) send(ctx context.Context, path string, payload ingest.Payload) error {
	retry := r.Retry
	retry.Reset()
	for {
		err := r.ingester.Ingest(ctx, payload, nil)
		rejected, ok := errors.AsType[*ingest.PipelineError](err)
		if !ok || consumererror.IsPermanent(rejected) {
			return err
		}
		payload.Resent = true // and is translated again, since its consumer may have changed it
		after := retry.NextBackOff()
		r.Logger.Debug("Pipeline temporarily unavailable; will retry", zap.String("path", path), zap.Duration("after", after), zap.Error(err))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(after):
		}
	}
}
