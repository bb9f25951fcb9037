// Copyright The otelcol-profiles Authors
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
	"go.opentelemetry.io/collector/pdata/pcommon"
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
	// refused are final errors, of what is no record and of records that are not left
	// any more.
	refused refusals

	samples, size int // of all records, those that are written among them
}

// refusals are final errors, of which the first is kept.
type refusals struct {
	first  error
	count  int
	untold map[string]int // by reason, those that were not counted and logged yet
}

func (r *refusals) add(reason string, err error) {
	if r.first == nil {
		r.first = err
	}
	r.count++
	if r.untold == nil {
		r.untold = map[string]int{}
	}
	r.untold[reason]++
}

// err is nil if there are none. It says how many of what there are.
func (r *refusals) err(what string) error {
	if r.count > 1 {
		return fmt.Errorf("%d %s, the first of them: %w", r.count, what, r.first)
	}
	return r.first
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

// Unmarshal logs and counts what it cannot restore: the queue drops it and says so
// at debug level only.
func (c encoding) Unmarshal(b []byte) (context.Context, xexporterhelper.Request, error) {
	r, err := c.restore(b)
	if err != nil {
		c.e.tellDropped(err, 1, len(b))
		return context.Background(), nil, err
	}
	return context.Background(), r, nil
}

func (c encoding) restore(b []byte) (*request, error) {
	d := decoder{left: b}
	if version := d.take(1); !bytes.Equal(version, []byte{encodingVersion}) {
		return nil, errEncoding
	}
	content, keys := segment.Content(d.text()), d.texts()
	r := &request{}
	for len(d.left) > 0 && !d.failed {
		group := d.texts()
		count := segment.Count{Profiles: int(d.number()), Samples: int(d.number())}
		r.add(group, d.take(d.number()), count)
	}
	if d.failed {
		return nil, errEncoding
	}
	if content == c.e.options.Format.Content && slices.Equal(keys, c.e.config.GroupBy) {
		return r, nil
	}
	return c.again(content, r)
}

// again makes records of another configuration into those of this one. One that cannot
// be made keeps no other from it. An error is of all.
func (c encoding) again(content segment.Content, r *request) (*request, error) {
	var unmarshaler pprofile.Unmarshaler
	switch content {
	case segment.OTLPProto:
		unmarshaler = &pprofile.ProtoUnmarshaler{}
	case segment.OTLPJSON:
		unmarshaler = &pprofile.JSONUnmarshaler{}
	default:
		if content != c.e.options.Format.Content {
			return nil, fmt.Errorf("what the queue has stored is %q, which cannot be made %q any more", content, c.e.options.Format.Content)
		}
		// A pprof does not say what to group it by.
		unset := groupNames(pcommon.NewMap(), c.e.config.GroupBy)
		for i := range r.left {
			r.left[i].group = unset
		}
		return r, nil
	}
	all := &request{}
	for _, record := range r.left {
		pd, err := unmarshaler.UnmarshalProfiles(record.bytes)
		if err == nil {
			err = c.e.convert(all, pd)
		}
		if err != nil {
			all.refused.add(reasonConvert, err)
		}
	}
	if err := all.refused.err("records"); err != nil {
		err = fmt.Errorf("what the queue has stored: %w", err)
		if len(all.left) == 0 {
			return nil, err
		}
		c.e.tellDropped(err, all.refused.count, r.size)
		all.refused.untold = nil
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
