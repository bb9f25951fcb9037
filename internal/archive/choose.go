// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"path/filepath"

	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
)

// read yields the records of a file. An error concerns the rest of it.
func (r *recordReader) read() error {
	if name, ours := recordfile.ParseName(filepath.Base(r.path)); ours && r.isRegular() {
		return r.readFormat(name.Format)
	}
	err := r.readContent()
	if err == nil || r.number > r.part.Before {
		return err
	}
	for _, format := range separable {
		if r.isRegular() && r.starts()[format.Compression] && r.hasRecord(format) {
			return r.readFormat(format)
		}
	}
	return err
}

// readContent reads a file whose first bytes tell the format.
func (r *recordReader) readContent() error {
	content, compression, err := decompress(bufio.NewReaderSize(r.file, headSize), r.options.maxRecord())
	if err != nil {
		return err
	}
	head, err := content.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) && len(head) == 0 {
		return err
	}
	plain, contentSize := compression == recordfile.None, r.size
	if !plain {
		contentSize, r.line = 0, -1
	}
	found, err := layoutOf(head, contentSize)
	format := recordfile.Format{Content: recordfile.OTLPJSON, Compression: compression}
	if found == prefixed {
		format.Content = recordfile.OTLPProto
	}
	switch {
	case err != nil:
		return err
	case found == single && jfrtranslator.IsRecording(head) && plain && r.isRegular():
		return r.readChunks(r.file, r.size)
	case found == single:
		if plain && isTextPart(head) && r.hasRecord(format) { // after a damaged line
			return r.readFormat(format)
		}
		return r.readSingle(content)
	}
	// A pipe, a file that is compressed as a whole, or contrib's, which compresses what follows the length.
	stream := !r.isRegular() || !plain && !r.hasRecord(format) || plain && bytes.HasPrefix(head[min(len(head), prefixSize):], zstdMagic)
	switch {
	case stream && found == lines:
		return r.readLines(content)
	case stream:
		return r.readPrefixed(content)
	default:
		return r.readFormat(format)
	}
}

// separable are the formats of the exporter in which the next record can be found after a damaged one.
var separable = []recordfile.Format{
	{Content: recordfile.OTLPProto, Compression: recordfile.Zstd},
	{Content: recordfile.OTLPProto, Compression: recordfile.Gzip},
	{Content: recordfile.OTLPJSON, Compression: recordfile.Zstd},
	{Content: recordfile.OTLPJSON, Compression: recordfile.Gzip},
	{Content: recordfile.OTLPJSON},
}

// hasRecord reports whether a file has a record as the exporter writes it in this format. It does not look into a
// pipe, which could not be read again.
func (r *recordReader) hasRecord(format recordfile.Format) (found bool) {
	if !r.isRegular() {
		return false
	}
	if format == (recordfile.Format{Content: recordfile.OTLPJSON}) {
		return r.starts()[recordfile.None]
	}
	search := recordReader{options: r.options, size: r.size, path: r.path, yield: func(_ *Record, err error) bool {
		found = err == nil
		return !found
	}}
	_ = search.readSegment(r.file.File, format) // the file is read again, and the error reported
	return found
}

const lineStart, otherLineStart = "\n{\"resourceProfiles\":", "\n{\"dictionary\":"

// startsOf are the bytes with which the exporter starts a record: one that is compressed, or a line after
// the first.
var startsOf = map[recordfile.Compression][]string{
	recordfile.None: {lineStart, otherLineStart},
	recordfile.Gzip: {string(gzipMagic) + "\x08\x00"}, // deflate, without a name
	recordfile.Zstd: {string(zstdMagic)},
}

// starts returns the compressions of which the file has the start of a record somewhere. It reads the file once.
func (r *recordReader) starts() map[recordfile.Compression]bool {
	if r.foundStarts != nil {
		return r.foundStarts
	}
	found, content := map[recordfile.Compression]bool{}, bufio.NewReaderSize(r.part.of(r.file.File, r.size), 64<<10)
	for {
		buffered, err := content.Peek(content.Size())
		for compression, starts := range startsOf {
			for _, start := range starts {
				found[compression] = found[compression] || bytes.Contains(buffered, []byte(start))
			}
		}
		if err != nil {
			r.foundStarts = found
			return found
		}
		_, _ = content.Discard(len(buffered) - len(lineStart) + 1) // never fails: the bytes are there
	}
}
