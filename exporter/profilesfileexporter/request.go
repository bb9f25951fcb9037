// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
)

// record is what is written at once, whole or not at all.
type record struct {
	group []string // names of its directory
	bytes []byte
	count segment.Count
}

// request is one payload, as the records that it makes. They are made once, before
// the queue: what is tried again are the same bytes, and only those that are left.
type request struct {
	left []record
	// refused are final errors of records that are not left any more.
	refused []error

	samples, size int // of all records, those that are written among them
}

var (
	_ xexporterhelper.Request = (*request)(nil)

	errMerge = errors.New("records are not merged or split")
)

func (r *request) add(group []string, bytes []byte, count segment.Count) {
	r.left = append(r.left, record{group, bytes, count})
	r.samples += count.Samples
	r.size += len(bytes)
}

// ItemsCount is the number of samples.
func (r *request) ItemsCount() int { return r.samples }

// BytesSize is the size of the records before compression.
func (r *request) BytesSize() int { return r.size }

// MergeSplit is for batching, which Config refuses.
func (r *request) MergeSplit(context.Context, int, exporterhelper.RequestSizerType, xexporterhelper.Request) ([]xexporterhelper.Request, error) {
	return nil, errMerge
}

// encoding is how a persistent queue keeps requests: a version, the content of the
// records, the keys that they are grouped by, and each record. All numbers are
// varints; texts have their length before them.
type encoding struct{ e *fileExporter }

const encodingVersion = 1

var errEncoding = errors.New("what the queue has stored is cut short or not of this exporter")

func (c encoding) Marshal(_ context.Context, req xexporterhelper.Request) ([]byte, error) {
	r := req.(*request)
	b := make([]byte, 0, r.size+64*(len(r.left)+1))
	b = append(b, encodingVersion)
	b = appendText(b, string(c.e.options.Format.Content))
	b = appendTexts(b, c.e.config.GroupBy)
	for _, record := range r.left {
		b = appendTexts(b, record.group)
		b = binary.AppendUvarint(b, uint64(record.count.Profiles))
		b = binary.AppendUvarint(b, uint64(record.count.Samples))
		b = append(binary.AppendUvarint(b, uint64(len(record.bytes))), record.bytes...)
	}
	return b, nil
}

func (c encoding) Unmarshal(b []byte) (context.Context, xexporterhelper.Request, error) {
	d := decoder{left: b}
	if version := d.take(1); !bytes.Equal(version, []byte{encodingVersion}) {
		return context.Background(), nil, errEncoding
	}
	content, keys := segment.Content(d.text()), d.texts()
	r := &request{}
	for len(d.left) > 0 && !d.failed {
		group := d.texts()
		count := segment.Count{Profiles: int(d.number()), Samples: int(d.number())}
		r.add(group, d.take(d.number()), count)
	}
	if d.failed {
		return context.Background(), nil, errEncoding
	}
	if content == c.e.options.Format.Content && slices.Equal(keys, c.e.config.GroupBy) {
		return context.Background(), r, nil
	}
	again, err := c.again(content, r)
	return context.Background(), again, err
}

// again makes records of another configuration into those of this one.
func (c encoding) again(content segment.Content, r *request) (xexporterhelper.Request, error) {
	var unmarshaler pprofile.Unmarshaler
	switch content {
	case segment.OTLPProto:
		unmarshaler = &pprofile.ProtoUnmarshaler{}
	case segment.OTLPJSON:
		unmarshaler = &pprofile.JSONUnmarshaler{}
	default:
		return nil, fmt.Errorf("what the queue has stored is %q, which cannot be made %q any more", content, c.e.options.Format.Content)
	}
	all := &request{}
	for _, record := range r.left {
		pd, err := unmarshaler.UnmarshalProfiles(record.bytes)
		if err != nil {
			return nil, fmt.Errorf("what the queue has stored: %w", err)
		}
		if err := c.e.convert(all, pd); err != nil {
			return nil, fmt.Errorf("what the queue has stored: %w", err)
		}
	}
	return all, nil
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func appendTexts(b []byte, texts []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(texts)))
	for _, text := range texts {
		b = appendText(b, text)
	}
	return b
}

// decoder takes what encoding has put together apart. After a failure it gives
// nothing.
type decoder struct {
	left   []byte
	failed bool
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.left)
	if n <= 0 {
		d.left, d.failed = nil, true
		return 0
	}
	d.left = d.left[n:]
	return v
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.left)) {
		d.left, d.failed = nil, true
		return nil
	}
	taken := d.left[:n:n]
	d.left = d.left[n:]
	return taken
}

func (d *decoder) text() string { return string(d.take(d.number())) }

func (d *decoder) texts() []string {
	n := d.number()
	if n > uint64(len(d.left)) {
		d.left, d.failed = nil, true
		return nil
	}
	var texts []string
	for range n {
		texts = append(texts, d.text())
	}
	return texts
}
