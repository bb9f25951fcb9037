// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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

// encoding is how a persistent queue stores requests: a line of JSON that describes the
// records, each with its content and group, and then their data. A record is written as it
// was encoded even if the configuration has changed since.
type encoding struct{ e *fileExporter }

// storedRecord describes a record in a persistent queue.
type storedRecord struct {
	segment.Record
	Data int // the length of the data, in place of the data itself
}

var errEncoding = errors.New("queued item is truncated or belongs to another exporter")

func (encoding) Marshal(_ context.Context, req xexporterhelper.Request) ([]byte, error) {
	r := req.(*request)
	stored := make([]storedRecord, len(r.pending))
	for i, record := range r.pending {
		stored[i] = storedRecord{Record: record, Data: len(record.Data)}
	}
	b, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	b = append(slices.Grow(b, 1+r.size), '\n')
	for _, record := range r.pending {
		b = append(b, record.Data...)
	}
	return b, nil
}

// Unmarshal logs and counts an item that it cannot restore, because the queue drops it and
// logs that at debug level only.
func (c encoding) Unmarshal(b []byte) (context.Context, xexporterhelper.Request, error) {
	r, err := decodeRequest(b)
	if err != nil {
		c.e.reportDropped(err, len(b))
		return context.Background(), nil, err
	}
	return context.Background(), r, nil
}

func decodeRequest(b []byte) (*request, error) {
	header, data, _ := bytes.Cut(b, []byte{'\n'})
	var stored []storedRecord
	if json.Unmarshal(header, &stored) != nil {
		return nil, errEncoding
	}
	r := &request{}
	for _, s := range stored {
		if !s.Content.Known() || s.Data < 0 || s.Data > len(data) {
			return nil, errEncoding
		}
		s.Record.Data, data = data[:s.Data:s.Data], data[s.Data:]
		r.add(s.Record)
	}
	if len(data) > 0 {
		return nil, errEncoding
	}
	return r, nil
}
