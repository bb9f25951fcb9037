// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

const sourceBuffer = 64 << 10 // bytes

// source reads a file of known size from any place on.
type source struct {
	size     int64
	section  *io.SectionReader
	buffered *bufio.Reader
	err      error // what the file system said, other than the end of the file
}

func newSource(from io.ReaderAt, size int64) *source {
	s := &source{size: size, section: io.NewSectionReader(from, 0, size)}
	s.buffered = bufio.NewReaderSize(s, sourceBuffer)
	return s
}

// Read is for s.buffered.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.section.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// failed returns what the file system said, if it failed.
func (s *source) failed() error { return s.err }

// offset is where the next byte of s.buffered comes from.
func (s *source) offset() int64 {
	at, _ := s.section.Seek(0, io.SeekCurrent) // never fails
	return at - int64(s.buffered.Buffered())
}

// seek makes s.buffered go on at an offset of 0 or more.
func (s *source) seek(at int64) {
	if ahead := at - s.offset(); ahead >= 0 && ahead <= int64(s.buffered.Buffered()) {
		_, _ = s.buffered.Discard(int(ahead)) // never fails: they are there
		return
	}
	_, _ = s.section.Seek(at, io.SeekStart) // never fails
	s.buffered.Reset(s)
}

// peek gives the next n bytes, or as many as are left, and does not pass them.
func (s *source) peek(n int) []byte {
	p, _ := s.buffered.Peek(n) // what is missing shows in the length
	return p
}

// find gives the offset of the next occurrence of the pattern, or the size.
func (s *source) find(pattern []byte) int64 {
	for {
		if len(s.peek(len(pattern))) < len(pattern) {
			return s.size
		}
		here := s.peek(s.buffered.Buffered())
		if i := bytes.Index(here, pattern); i >= 0 {
			return s.offset() + int64(i)
		}
		_, _ = s.buffered.Discard(len(here) - len(pattern) + 1) // never fails: they are there
	}
}

// skipLine gives the offset behind the next line feed, or the size if there is none.
func (s *source) skipLine() (end int64, ended bool) {
	for {
		switch _, err := s.buffered.ReadSlice(lineFeed); {
		case err == nil:
			return s.offset(), true
		case !errors.Is(err, bufio.ErrBufferFull):
			return s.size, false
		}
	}
}
