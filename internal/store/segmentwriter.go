// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"golang.org/x/sync/semaphore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// SegmentWriter writes a whole segment into an empty file, which has no name of a segment before it is complete.
type SegmentWriter struct {
	file    layout.Handle
	index   *contents.Builder
	records []segment.Record
	size    int64 // what is written, in bytes
	raw     int64 // the records, in bytes
}

// NewSegmentWriter returns a SegmentWriter whose index takes bytes from memory; nil is no limit but that of a segment. inputs, of which there may be
// none, are what the segment is made of: they come first, so that damage to the index leaves them.
func NewSegmentWriter(file layout.Handle, memory *semaphore.Weighted, inputs []segment.Input) (*SegmentWriter, error) {
	w := &SegmentWriter{file: file, index: contents.NewBuilder(memory)}
	if len(inputs) == 0 {
		return w, nil
	}
	return w, w.writeIndex(&segment.Index{Inputs: inputs})
}

func (w *SegmentWriter) write(data []byte) error {
	if err := layout.WriteAt(w.file, data, w.size); err != nil {
		return err
	}
	w.size += int64(len(data))
	return nil
}

func (w *SegmentWriter) writeIndex(x *segment.Index) error {
	frame, err := segment.AppendIndex(nil, x, w.size)
	if err != nil {
		return err
	}
	return w.write(frame)
}

// Add writes a record.
func (w *SegmentWriter) Add(data []byte, entry *contents.Entry) error {
	e := segment.NewEncoder()
	defer e.Release()
	encoded, err := e.Encode(segment.Proto, data)
	if err != nil {
		return err
	}
	at := w.size
	if err := w.write(encoded); err != nil {
		return err
	}
	w.records = append(w.records, segment.Record{Offset: at, Length: int64(len(encoded)), Entry: w.index.Add(entry)})
	w.raw += int64(len(data))
	return nil
}

// End writes the index, and syncs the file. inputs are those of NewSegmentWriter. size is that of the file in bytes.
func (w *SegmentWriter) End(inputs []segment.Input) (size int64, err error) {
	if err := w.writeIndex(&segment.Index{Records: w.records, Tables: w.index.Tables(), Inputs: inputs}); err != nil {
		return 0, err
	}
	return w.size, w.file.Sync()
}

// Records is the number of records.
func (w *SegmentWriter) Records() int { return len(w.records) }
