// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"context"
	"errors"
	"io"
	"iter"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/profilesfilereceiver/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/translator/foldedtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// records yields the records of a file, all of OTLP: those in other formats are translated. An error of the operating system, and
// errShutdown, end the file; any other one concerns one record.
func (r *fileReceiver) records(ctx context.Context, f *openFile) iter.Seq2[*archive.Record, error] {
	if f.Stored != nil {
		return r.archive.RecordsOfSegment(f.opened, f.Size, f.Path, f.Stored.Format)
	}
	if parts := r.ingester.Parts(f.opened, f.Size, f.Modified); parts != nil {
		return r.partRecords(ctx, f, parts)
	}
	return r.foreignRecords(ctx, f)
}

// foreignRecords yields the records of a file of another program.
func (r *fileReceiver) foreignRecords(ctx context.Context, f *openFile) iter.Seq2[*archive.Record, error] {
	return func(yield func(*archive.Record, error) bool) {
		for record, err := range r.archive.RecordsOf(f.opened, f.Size, f.Path) {
			if err == nil && record.Encoding.HasParts() { // compressed as a whole
				yield(r.wholeFile(ctx, f))
				return
			}
			if err == nil && record.Encoding != archive.OTLPProto && record.Encoding != archive.OTLPJSON {
				payload := r.payload(f)
				payload.Data = record.Data
				if record.Encoding == archive.Folded {
					payload.Folded = &foldedtranslator.Unmarshaler{}
				}
				record, err = r.translate(ctx, f, record.Number, payload)
			}
			if !yield(record, err) {
				return
			}
		}
	}
}

// wholeFile returns a compressed recording, execution trace or output of perf script as one record.
func (r *fileReceiver) wholeFile(ctx context.Context, f *openFile) (*archive.Record, error) {
	payload := r.payload(f)
	if f.Size > r.archive.MaxRecord {
		return nil, &archive.Error{File: f.Path, Record: 1, Offset: 0, Err: r.archive.TooLarge(f.Size)}
	}
	payload.Data = make([]byte, f.Size)
	if _, err := f.opened.ReadAt(payload.Data, 0); err != nil {
		return nil, err
	}
	return r.translate(ctx, f, 1, payload)
}

// unfinishedTime is how long a recording with an unfinished chunk, or an execution trace, must not have changed. Programs write to
// them each second. A JVM leaves a chunk unfinished only if it is killed.
const unfinishedTime = time.Minute

// mayGrow reports whether a program may still write the file.
func (r *fileReceiver) mayGrow(f *openFile) bool {
	if time.Since(f.Modified).Abs() >= unfinishedTime {
		return false
	}
	parts := r.ingester.Parts(f.opened, f.Size, f.Modified)
	return parts != nil && parts.MayGrow()
}

// partRecords yields the parts of a file, such as the chunks of a recording.
func (r *fileReceiver) partRecords(ctx context.Context, f *openFile, parts *ingest.Parts) iter.Seq2[*archive.Record, error] {
	return func(yield func(*archive.Record, error) bool) {
		payload := r.payload(f)
		payload.Parts = parts
		for number := 1; ; number++ {
			record, err := r.translate(ctx, f, number, payload)
			if errors.Is(err, io.EOF) || !yield(record, err) {
				return
			}
		}
	}
}

// translate returns a payload in another format as a record of OTLP. Its Profiles have the IDs that the pprof receiver gives them.
func (r *fileReceiver) translate(ctx context.Context, f *openFile, number int, payload ingest.Payload) (*archive.Record, error) {
	lease := r.inFlight.Lease(-1)
	defer lease.Release()
	translated, err := r.ingester.TranslateWithin(ctx, lease, payload)
	var data []byte
	if err == nil {
		data, err = (&pprofile.ProtoMarshaler{}).MarshalProfiles(translated.Profiles)
	}
	_, isSystem := errors.AsType[syscall.Errno](err)
	switch {
	case err == nil:
		return r.archive.RecordOf(archive.Record{File: f.Path, Number: number, Offset: -1, Encoding: archive.OTLPProto, Data: data}), nil
	case ctx.Err() != nil:
		return nil, errShutdown
	case isSystem, errors.Is(err, io.EOF):
		return nil, err
	default:
		return nil, &archive.Error{File: f.Path, Record: number, Offset: -1, Err: err}
	}
}

// newIngester returns what translates records.
func (r *fileReceiver) newIngester(set receiver.Settings) *ingest.Ingester {
	return ingest.New(ingest.Settings{
		Logger:    set.Logger,
		ScopeName: metadata.ScopeName,
		Version:   set.BuildInfo.Version,
		Unmarshaler: &pproftranslator.Unmarshaler{
			Limits:         pproftranslator.Limits{DecompressedSize: int(r.archive.MaxRecord)},
			TimestampLabel: "end_timestamp_ns", TraceIDLabel: "trace_id", SpanIDLabel: "span_id",
		},
		Legacy: true,
		JFR:    ingest.JFR{Timestamps: true, NormalizeClassNames: true},
		Metrics: ingest.Metrics{ // records are counted when they are sent
			PayloadSize: noop.Int64Counter{}, TranslationDuration: noop.Float64Histogram{},
			Repairs: noop.Int64Counter{},
		},
	}, r.next)
}

// payload returns what is known of all records of a file in another format.
func (r *fileReceiver) payload(f *openFile) ingest.Payload {
	attributes := r.pathAttributes.of(f.Path)
	profileType := attributes[attrkey.ProfileType]
	delete(attributes, attrkey.ProfileType)
	return ingest.Payload{
		Resource:    ingest.NewResource(attributes),
		ProfileType: profileType,
		Modified:    pcommon.NewTimestampFromTime(f.Modified),
		Sender:      filepath.Dir(f.Path),
	}
}

// profileTypeGroup is the named group of path_attributes that sets attrkey.ProfileType, and no attribute of the resource.
const profileTypeGroup = "profile_type"

// pathAttributes finds attributes in paths.
type pathAttributes struct {
	expression *regexp.Regexp
	logger     *zap.Logger
	warned     bool // that it does not match
}

// of returns the matches of the named groups in a path. It warns once of a path that does not match.
func (a *pathAttributes) of(path string) map[string]string {
	attributes := map[string]string{}
	groups := a.expression.FindStringSubmatch(filepath.ToSlash(path))
	for i, value := range groups {
		if name := a.expression.SubexpNames()[i]; name != "" && value != "" {
			key := attributeName(name)
			if name == profileTypeGroup {
				key = attrkey.ProfileType
			}
			attributes[key] = strings.ToValidUTF8(value, "\ufffd")
		}
	}
	if groups == nil && !a.warned {
		a.warned = true
		a.logger.Warn("File path does not match path_attributes; reading it without these attributes",
			zap.String("path", path), zap.Stringer("path_attributes", a.expression))
	}
	return attributes
}

// attributeName is the attribute that a group of path_attributes sets.
var attributeName = strings.NewReplacer("__", "_", "_", ".").Replace
