// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package files reads pprof profiles from files: the file section of the receiver.
//
// A file that the next consumer rejects temporarily is retried until it is accepted, while
// others are read.
package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/filewatch"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/section"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// Config is the file section.
type Config struct {
	Watch filewatch.Config `mapstructure:",squash"`

	// PathAttributes is a regular expression that is matched against the absolute path of a
	// file, with slashes. Each named group that is not empty sets an attribute. In a group
	// name, _ becomes . and __ becomes _: service_name sets service.name.
	PathAttributes string `mapstructure:"path_attributes"`

	// MaxDecompressedSize limits the size of a profile, after all layers of compression
	// are removed, and of its file; of an uncompressed JFR recording, the size of a chunk. Default: 64MiB.
	MaxDecompressedSize config.Size `mapstructure:"max_decompressed_size"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{Watch: filewatch.Config{PollInterval: 10 * time.Second}, MaxDecompressedSize: 64 * config.MiB}
}

// Validate checks all keys.
func (c *Config) Validate() error {
	var checks config.Checks
	c.Watch.Check(&checks)
	expression, err := regexp.Compile(c.PathAttributes)
	checks.That(err == nil, "path_attributes", c.PathAttributes, "a regular expression: %v", err)
	checks.That(err != nil || c.PathAttributes == "" || strings.Join(expression.SubexpNames(), "") != "", "path_attributes", c.PathAttributes,
		"a regular expression with a named group such as (?P<service_name>[^/]+)")
	ingest.CheckMaxDecompressedSize(&checks, c.MaxDecompressedSize)
	return checks.Err()
}

// profileTypeGroup is the named group of path_attributes that sets profile.type, and
// no attribute of the resource.
const profileTypeGroup = "profile.type"

// The values of the attribute outcome of receiver_pprof_files besides those of ingest.Outcome.
const (
	outcomeSuccess    = "success"
	outcomeUnreadable = "unreadable" // retried
)

// Reader reads files from Start to Shutdown.
type Reader struct {
	*filewatch.Watcher
	section.Settings

	config         Config
	logger         *zap.Logger
	ingester       *ingest.Ingester
	pathAttributes *regexp.Regexp
	warned         bool // that it does not match
}

// New returns a Reader of a valid configuration that passes profiles to the ingester.
func New(config Config, set section.Settings, ingester *ingest.Ingester) *Reader {
	r := &Reader{
		Settings: set, config: config, logger: set.Telemetry.Logger, ingester: ingester, pathAttributes: regexp.MustCompile(config.PathAttributes),
	}
	r.Watcher = filewatch.New(config.Watch, r.read, r.logger)
	return r
}

// Start starts to read.
func (r *Reader) Start(ctx context.Context, host component.Host) error {
	if err := r.Watcher.Start(ctx, host, r.ID); err != nil {
		return err
	}
	r.logger.Info("Started reading files", zap.Strings("include", r.config.Watch.Include), zap.Stringer("poll_interval", r.config.Watch.PollInterval))
	return nil
}

// read is the Handler of the Watcher. It ingests a file and counts the outcome, unless the file is to be read again.
func (r *Reader) read(ctx context.Context, file *filewatch.File) {
	attributes, matches := r.attributes(file.Path)
	err := r.ingest(ctx, file, attributes)
	switch {
	case err != nil && ctx.Err() != nil:
		return
	case errors.Is(err, filewatch.ErrChanged):
	case ingest.IsRetryable(err):
		err = &filewatch.RetryError{Err: err, Rejected: true}
	default:
		ctx = context.WithoutCancel(ctx)
		r.Metrics.ReceiverPprofFiles.Add(ctx, 1, r.Metrics.Attributes(attribute.String("outcome", outcomeOf(err))))
		if err == nil && !matches {
			r.Metrics.ReceiverPprofUnmatchedFiles.Add(ctx, 1, r.Metrics.Attributes())
		}
	}
	r.Done(file, err)
}

// attributes returns the matches of the named groups of path_attributes in a path, and whether it matches at all. It
// warns once of a path that it does not match.
func (r *Reader) attributes(path string) (attributes map[string]string, matches bool) {
	attributes = map[string]string{}
	groups := r.pathAttributes.FindStringSubmatch(filepath.ToSlash(path))
	for i, value := range groups {
		if name := r.pathAttributes.SubexpNames()[i]; name != "" && value != "" {
			attributes[attributeName(name)] = strings.ToValidUTF8(value, "\ufffd")
		}
	}
	if groups == nil && !r.warned {
		r.warned = true
		r.logger.Warn("File path does not match path_attributes; reading it without these attributes",
			zap.String("path", path), zap.Stringer("path_attributes", r.pathAttributes))
	}
	return attributes, groups != nil
}

// attributeName is the attribute that a group of path_attributes sets.
var attributeName = strings.NewReplacer("__", "_", "_", ".").Replace

func outcomeOf(err error) string {
	outcome := ingest.Outcome(err)
	_, retry := errors.AsType[*filewatch.RetryError](err)
	switch {
	case err == nil:
		return outcomeSuccess
	case retry && outcome != ingest.OutcomePanic: // a panic of a later component is retried, too
		return outcomeUnreadable
	}
	return outcome
}

// ingest passes a file to the pipeline.
func (r *Reader) ingest(ctx context.Context, file *filewatch.File, attributes map[string]string) (err error) {
	defer ingest.Recover(r.logger, &err, zap.String("path", file.Path))
	lease := r.InFlight.Lease(-1) // a file waits as long as it must
	defer lease.Release()
	profileType := attributes[profileTypeGroup]
	delete(attributes, profileTypeGroup)
	payload := ingest.Payload{
		Resource:    ingest.NewResource(r.ResourceAttributes, attributes),
		ProfileType: profileType,
		Modified:    pcommon.NewTimestampFromTime(file.Modified),
		Sender:      filepath.Dir(file.Path),
	}
	opened, err := file.Open()
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }() // it is only read
	head := make([]byte, 4)
	if _, err := opened.ReadAt(head, 0); err == nil && jfrtranslator.IsRecording(head) { // uncompressed, of a JVM
		return r.ingestChunks(ctx, file, opened, payload, lease)
	}
	if payload.Data, err = r.readAll(ctx, file, opened, lease); err != nil {
		return err
	}
	prepared, err := r.ingester.TranslateWithin(ctx, lease, payload)
	if err != nil {
		return err
	}
	payload.Data = nil
	lease.ShrinkBody(0)
	return r.pass(ctx, prepared)
}

// pass passes a prepared payload of a file to the next consumer. A panic there is retried; one at the content of the
// file would be the same each time.
func (r *Reader) pass(ctx context.Context, prepared *ingest.Result) error {
	err := r.ingester.Pass(ctx, prepared)
	if _, panicked := errors.AsType[*ingest.PanicError](err); panicked {
		return &filewatch.RetryError{Err: err}
	}
	return err
}

// readAll returns the content of the file.
func (r *Reader) readAll(ctx context.Context, file *filewatch.File, opened *os.File, lease *budget.Lease) ([]byte, error) {
	if limit := int64(r.config.MaxDecompressedSize); file.Size > limit {
		return nil, &pproftranslator.LimitError{What: "size in bytes", Limit: limit, Got: file.Size}
	}
	content, err := ingest.ReadAll(ctx, opened, file.Size, lease)
	if _, unreadable := errors.AsType[*fs.PathError](err); unreadable {
		return nil, &filewatch.RetryError{Err: err}
	}
	if err == nil {
		err = file.Unchanged(opened)
	}
	return content, err
}

// unfinishedTime is how long a recording with an unfinished chunk must not have changed. A JVM writes to its chunk each
// second, and leaves one unfinished only if it is killed.
const unfinishedTime = time.Minute

// ingestChunks passes a recording to the pipeline chunk by chunk, and stores how many were accepted. It
// returns the first error of a chunk after the others.
func (r *Reader) ingestChunks(
	ctx context.Context, file *filewatch.File, recording *os.File, payload ingest.Payload, lease *budget.Lease,
) (first error) {
	payload.Recording.Chunks, payload.Recording.Size = r.ingester.Chunks(recording, file.Size), file.Size
	if time.Since(file.Modified).Abs() < unfinishedTime && payload.Recording.Chunks.Unfinished() {
		return filewatch.ErrChanged // it soon has: what is read now would be read again
	}
	accepted := 0
	r.Progress(file, &accepted)
	for n := 1; ; n++ {
		prepared, err := r.ingester.TranslateWithin(ctx, lease, payload)
		if errors.Is(err, io.EOF) {
			return first
		}
		if _, unreadable := errors.AsType[*fs.PathError](err); unreadable {
			return &filewatch.RetryError{Err: err}
		}
		if err == nil && n > accepted {
			if err = file.Unchanged(recording); err == nil {
				err = r.pass(ctx, prepared)
			}
		}
		_, retry := errors.AsType[*filewatch.RetryError](err)
		switch {
		case retry, ctx.Err() != nil, errors.Is(err, filewatch.ErrChanged), ingest.IsRetryable(err):
			return err
		case first == nil:
			first = err
		}
		if lease.Release(); n > accepted {
			r.SaveProgress(file, n)
		}
	}
}
