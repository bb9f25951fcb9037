// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	pqzstd "github.com/parquet-go/parquet-go/compress/zstd"
)

const (
	batch   = 256       // rows that parquet-go gets at once
	maxPage = 256 << 10 // of a column, in bytes before compression
	minPage = 16 << 10
	window  = 2 * maxPage // of zstd

	// Parts of the memory limit: of a row group as it is stored, of the dictionary of one of the columns, and of its page.
	groupShare      = 4
	dictionaryShare = 32
	pageShare       = 128
	// maxGroup is the largest row group as it is stored, in bytes: engines read groups at once.
	maxGroup = 32 << 20
)

// codec is zstd with less memory: that of parquet-go keeps two windows of 16 MiB.
type codec struct {
	pqzstd.Codec
	encoder *zstd.Encoder
}

func (c *codec) Encode(dst, src []byte) ([]byte, error) {
	return c.encoder.EncodeAll(src, dst[:0]), nil
}

// table writes a Parquet file of rows. It holds one row group in memory.
type table[R any] struct {
	file  *parquet.GenericWriter[R]
	limit int64 // of a row group in bytes
	start int64 // of the row group in the file
	rows  []R   // that were not given to file yet
	count int64
}

// newCodec returns a codec for tables of one goroutine.
func newCodec() *codec {
	encoder, err := zstd.NewWriter(nil, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true))
	if err != nil {
		panic(err) // the options are constant
	}
	return &codec{encoder: encoder}
}

func newTable[R any](w io.Writer, name string, maxMemory int64, with *codec) *table[R] {
	options := []parquet.WriterOption{
		parquet.DataPageVersion(1), // the lengths of lists are compressed, too
		parquet.Compression(with), parquet.DictionaryMaxBytes(maxMemory / dictionaryShare),
		parquet.PageBufferSize(int(min(max(maxMemory/pageShare, minPage), maxPage))),
		parquet.CreatedBy("otelcol-profiles", "lake", Version), parquet.KeyValueMetadata(TableKey, name), parquet.KeyValueMetadata(VersionKey, Version),
	}
	for _, column := range parquet.SchemaOf(new(R)).Columns() {
		if len(column) > 1 { // of a list or map, whose least and largest elements tell nothing
			options = append(options, parquet.SkipPageBounds(column...))
		}
	}
	file := parquet.NewGenericWriter[R](w, options...)
	return &table[R]{file: file, limit: min(maxMemory/groupShare, maxGroup), rows: make([]R, 0, batch)}
}

// add adds a row. written is set if all rows are in the file now, so that what they refer to may be used again.
func (t *table[R]) add(row *R) (written bool, err error) {
	t.rows, t.count = append(t.rows, *row), t.count+1
	if len(t.rows) < batch {
		return false, nil
	}
	return true, t.flush()
}

// flush writes the rows, and the row group if it is large enough.
func (t *table[R]) flush() error {
	if _, err := t.file.Write(t.rows); err != nil {
		return err
	}
	clear(t.rows)
	t.rows = t.rows[:0]
	if size := t.file.Size(); size-t.start >= t.limit {
		if err := t.file.Flush(); err != nil {
			return err
		}
		t.start = t.file.Size()
	}
	return nil
}

// close writes the end of the file, which the caller closes.
func (t *table[R]) close() error {
	if err := t.flush(); err != nil {
		return err
	}
	return t.file.Close()
}
