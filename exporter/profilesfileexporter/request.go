// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"

	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
)

// request holds the records of one payload. They are made once, before the queue: a retry
// writes the same bytes, and only those that are pending.
type request struct {
	pending  []segment.Record
	rejected rejections

	samples, size int // of all records, also of those that were written
}

func (r *request) add(record segment.Record) {
	r.pending = append(r.pending, record)
	r.samples += record.Summary.Samples
	r.size += len(record.Data)
}

// rejections collect permanent errors.
type rejections struct {
	first      error
	count      int
	unreported map[string]int // by reason, those that are not counted and logged yet
}

func (r *rejections) add(reason string, err error) {
	if r.first == nil {
		r.first = err
	}
	r.count++
	if r.unreported == nil {
		r.unreported = map[string]int{}
	}
	r.unreported[reason]++
}

// err returns nil if there are none. what was rejected is for the message.
func (r *rejections) err(what string) error {
	if r.count > 1 {
		return fmt.Errorf("%d %s rejected; first error: %w", r.count, what, r.first)
	}
	return r.first
}

var _ xexporterhelper.Request = (*request)(nil)

// ItemsCount is the number of samples.
func (r *request) ItemsCount() int { return r.samples }

// BytesSize is the size of the records before compression.
func (r *request) BytesSize() int { return r.size }

// MergeSplit is for batching, which Config rejects.
func (r *request) MergeSplit(context.Context, int, exporterhelper.RequestSizerType, xexporterhelper.Request) ([]xexporterhelper.Request, error) {
	return nil, errors.New("records cannot be merged or split")
}

// encoding is how a persistent queue stores requests: a version and the records, each with
// its content and group, so that a record is written as it was encoded even if the
// configuration has changed since. Numbers are varints; texts are preceded by their length.
type encoding struct{ e *fileExporter }

const encodingVersion = 2

var errEncoding = errors.New("queued item is truncated or belongs to another exporter")

func (encoding) Marshal(_ context.Context, req xexporterhelper.Request) ([]byte, error) {
	r := req.(*request)
	b := make([]byte, 0, r.size+128*(len(r.pending)+1))
	b = append(b, encodingVersion)
	for _, record := range r.pending {
		b = appendText(b, record.Content)
		b = appendTexts(b, record.Group)
		b = binary.AppendUvarint(b, uint64(record.Summary.Profiles))
		b = binary.AppendUvarint(b, uint64(record.Summary.Samples))
		b = appendTexts(b, record.Summary.Services)
		b = appendTexts(b, record.Summary.SampleTypes)
		b = appendText(b, record.Data)
	}
	return b, nil
}

// Unmarshal logs and counts an item that it cannot restore, because the queue drops it and
// logs that at debug level only.
func (c encoding) Unmarshal(b []byte) (context.Context, xexporterhelper.Request, error) {
	d := decoder{rest: b}
	version := d.number()
	r := &request{}
	for len(d.rest) > 0 && version == encodingVersion {
		record := segment.Record{Content: segment.Content(d.bytes()), Group: d.texts()}
		record.Summary = segment.Summary{Profiles: int(d.number()), Samples: int(d.number()), Services: d.texts(), SampleTypes: d.texts()}
		record.Data = d.bytes()
		d.failed = d.failed || !record.Content.Known()
		r.add(record)
	}
	if d.failed || version != encodingVersion {
		c.e.reportDropped(errEncoding, len(b))
		return context.Background(), nil, errEncoding
	}
	return context.Background(), r, nil
}

func appendText[T ~string | ~[]byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func appendTexts(b []byte, texts []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(texts)))
	for _, text := range texts {
		b = appendText(b, text)
	}
	return b
}

// decoder reads what encoding has written. After a failure it returns zero values.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) fail() { d.rest, d.failed = nil, true }

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) bytes() []byte {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.fail()
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) texts() (texts []string) {
	for n := d.number(); n > 0 && !d.failed; n-- {
		texts = append(texts, string(d.bytes()))
	}
	return texts
}
