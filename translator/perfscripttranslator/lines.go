// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscripttranslator

import (
	"bytes"
	"io"
)

// lineReader reads lines, of which it keeps the first bytes, as many as the buffer has.
type lineReader struct {
	from   io.Reader
	buffer []byte
	start  int // of what is read and not yet returned
	end    int
	err    error
}

// next returns the next line without its end, and its length with that. At the end, the length is 0.
func (r *lineReader) next() (line []byte, length int64, err error) {
	searched := 0
	for {
		if i := bytes.IndexByte(r.buffer[r.start+searched:r.end], '\n'); i >= 0 {
			line = r.buffer[r.start : r.start+searched+i]
			r.start += searched + i + 1
			return trim(line), int64(searched + i + 1), nil
		}
		if r.end-r.start == len(r.buffer) {
			return r.skip()
		}
		if r.err != nil {
			line = r.buffer[r.start:r.end]
			r.start = r.end
			return trim(line), int64(len(line)), r.err
		}
		searched = r.end - r.start
		r.fill()
	}
}

func trim(line []byte) []byte { return bytes.TrimRight(line, "\r \t") }

// fill reads more behind what is not yet returned.
func (r *lineReader) fill() {
	copy(r.buffer, r.buffer[r.start:r.end])
	r.start, r.end = 0, r.end-r.start
	n, err := r.from.Read(r.buffer[r.end:])
	r.end += n
	r.err = err
}

// skip returns the start of a line that fills the buffer, and leaves the rest out.
func (r *lineReader) skip() (line []byte, length int64, err error) {
	kept := bytes.Clone(r.buffer[r.start:r.end])
	length = int64(len(kept))
	r.start = r.end
	for r.err == nil {
		r.fill()
		if i := bytes.IndexByte(r.buffer[r.start:r.end], '\n'); i >= 0 {
			r.start += i + 1
			return trim(kept), length + int64(i+1), nil
		}
		length += int64(r.end - r.start)
		r.start = r.end
	}
	return trim(kept), length, nil
}
