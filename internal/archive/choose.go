// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"path/filepath"

	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
)

// read yields the records of a file. An error concerns the rest of it.
func (r *recordReader) read(from *countedFile, size int64) error {
	if name, ours := segment.ParseName(filepath.Base(r.path)); ours && size >= 0 {
		return r.readFormat(from, size, name.Format)
	}
	err := r.readContent(from, size)
	if err == nil || r.number > r.part.Before {
		return err
	}
	for _, format := range separable {
		if size >= 0 && r.startsIn(from, size)[format.Compression] && r.hasRecord(from, size, format) {
			return r.readFormat(from, size, format)
		}
	}
	return err
}

// readContent reads a file whose first bytes tell the format.
func (r *recordReader) readContent(from *countedFile, size int64) error {
	content, compression, err := decompress(bufio.NewReaderSize(from, headSize), r.options.maxRecord())
	if err != nil {
		return err
	}
	head, err := content.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) && len(head) == 0 {
		return err
	}
	plain, contentSize := compression == segment.None, size
	if !plain {
		contentSize, r.line = 0, -1
	}
	found, err := layoutOf(head, contentSize)
	format := segment.Format{Content: segment.OTLPJSON, Compression: compression}
	if found == prefixed {
		format.Content = segment.OTLPProto
	}
	switch {
	case err != nil:
		return err
	case found == single && jfrtranslator.IsRecording(head) && plain && size >= 0:
		return r.readChunks(from, size)
	case found == single:
		if plain && isTextPart(head) && r.hasRecord(from, size, format) { // after a damaged line
			return r.readFormat(from, size, format)
		}
		return r.readSingle(content)
	}
	// A pipe, a file that is compressed as a whole, or contrib's, which compresses what follows the length.
	stream := size < 0 || !plain && !r.hasRecord(from, size, format) || plain && bytes.HasPrefix(head[min(len(head), prefixSize):], zstdMagic)
	switch {
	case stream && found == lines:
		return r.readLines(content)
	case stream:
		return r.readPrefixed(content)
	default:
		return r.readFormat(from, size, format)
	}
}

// separable are the formats of the exporter in which the next record can be found after a damaged one.
var separable = []segment.Format{
	{Content: segment.OTLPProto, Compression: segment.Zstd},
	{Content: segment.OTLPProto, Compression: segment.Gzip},
	{Content: segment.OTLPJSON, Compression: segment.Zstd},
	{Content: segment.OTLPJSON, Compression: segment.Gzip},
	{Content: segment.OTLPJSON},
}

// hasRecord reports whether a file has a record as the exporter writes it in this format. It does not look into a
// pipe, which could not be read again.
func (r *recordReader) hasRecord(from *countedFile, size int64, format segment.Format) (found bool) {
	if size < 0 {
		return false
	}
	if format == (segment.Format{Content: segment.OTLPJSON}) {
		return r.startsIn(from, size)[segment.None]
	}
	search := recordReader{options: r.options, path: r.path, yield: func(_ *Record, err error) bool {
		found = err == nil
		return !found
	}}
	_ = search.readSegment(from.File, size, format) // the file is read again, and the error reported
	return found
}

const lineStart, otherLineStart = "\n{\"resourceProfiles\":", "\n{\"dictionary\":"

// startsOf are the bytes with which the exporter starts a record: one that is compressed, or a line after
// the first.
var startsOf = map[segment.Compression][]string{
	segment.None: {lineStart, otherLineStart},
	segment.Gzip: {string(gzipMagic) + "\x08\x00"}, // deflate, without a name
	segment.Zstd: {string(zstdMagic)},
}

// startsIn returns the compressions of which the file has the start of a record somewhere. It reads the file once.
func (r *recordReader) startsIn(from *countedFile, size int64) map[segment.Compression]bool {
	if r.starts != nil {
		return r.starts
	}
	found, content := map[segment.Compression]bool{}, bufio.NewReaderSize(r.part.of(from.File, size), 64<<10)
	for {
		buffered, err := content.Peek(content.Size())
		for compression, starts := range startsOf {
			for _, start := range starts {
				found[compression] = found[compression] || bytes.Contains(buffered, []byte(start))
			}
		}
		if err != nil {
			r.starts = found
			return found
		}
		_, _ = content.Discard(len(buffered) - len(lineStart) + 1) // never fails: the bytes are there
	}
}
