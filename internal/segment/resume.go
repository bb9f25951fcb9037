// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// resume finds the first place behind from where a whole record may be, or the
// end of the file.
func (r *Reader) resume(from int64) (int64, error) {
	var (
		at  int64
		err error
	)
	switch {
	case r.format.Compression == Gzip:
		at, err = r.findCompressed(from, gzipMagic)
	case r.format.Compression == Zstd:
		at, err = r.findCompressed(from, zstdMagic)
	case r.format.framing() == Lines:
		at, err = r.findLine(from)
	case r.format.framing() == Bare:
		at = r.source.size
	default:
		at, err = r.findPrefixed(from + 1)
	}
	if r.source.failed() != nil {
		err = r.source.failed()
	}
	return at, err
}

// findCompressed finds the next member or frame that holds a whole record. The
// magic number alone may also occur inside of one. As with findPrefixed, what is read
// in vain is at most in proportion to what is passed; behind damage that is no longer
// than a record, the next one is always tried.
func (r *Reader) findCompressed(from int64, magic []byte) (int64, error) {
	r.charge(from)
	for at := from + 1; ; at++ {
		r.source.seek(at)
		found := r.source.find(magic)
		r.work -= workPerByte * (found - at + 1)
		at = found
		if at == r.source.size {
			return at, nil
		}
		if r.work >= freeCompressedWork {
			continue
		}
		if found, err := r.try(at); found || err != nil {
			return at, err
		}
		r.charge(at)
	}
}

// charge counts what was read in vain from a place on: compressed, what that was made
// into, and what has to be read again to go back.
func (r *Reader) charge(at int64) {
	if read := r.source.offset() - at; read > 0 {
		r.work += read + int64(len(r.record))/decodedPerWork + min(sourceBuffer, r.source.size-at)
	}
}

// findLine finds the next line. Where a damaged line feed has joined two, that is
// the second of them. Behind the last line feed there is none.
func (r *Reader) findLine(from int64) (int64, error) {
	r.source.seek(from)
	end, ended := r.source.skipLine()
	if !ended {
		return end, nil
	}
	r.source.seek(from)
	for {
		at := r.source.find([]byte{'}'})
		if at >= end {
			return end, nil
		}
		r.source.seek(at)
		head := r.source.peek(4)
		r.source.seek(at + 1)
		// "},{" is what arrays look like.
		if len(head) < 4 || head[1] == ',' || head[2] != '{' || head[3] != '"' && head[3] != '}' {
			continue
		}
		if found, err := r.objectAt(at+2, end-1); found || err != nil {
			return at + 2, err
		}
	}
}

// objectAt says whether a JSON value goes from a place exactly to another. It reads
// up to the first byte that is wrong. Read from one "}x{" on, the next is wrong unless
// it is in a string, and then the one behind that is not: so however many there are
// in a line, it is not read again for each.
func (r *Reader) objectAt(at, end int64) (bool, error) {
	if end-at > int64(r.max) {
		return false, nil
	}
	decoder := json.NewDecoder(&warmingUp{from: io.NewSectionReader(r.source.section, at, end-at), most: 32})
	err := decoder.Decode(new(anyJSON))
	if _, wrong := errors.AsType[*json.SyntaxError](err); wrong || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, nil
	}
	return err == nil && at+decoder.InputOffset() == end, err
}

// anyJSON is a value of which nothing is kept.
type anyJSON struct{}

func (*anyJSON) UnmarshalJSON([]byte) error { return nil }

// warmingUp reads little at first: mostly nothing more is wanted.
type warmingUp struct {
	from io.Reader
	most int // bytes of the next read
}

func (w *warmingUp) Read(p []byte) (int, error) {
	n, err := w.from.Read(p[:min(len(p), w.most)])
	w.most *= 2
	return n, err
}

const (
	// freeWork is how many bytes may be looked at in vain, beyond those that were passed.
	freeWork = 1 << 20
	// freeCompressedWork is that of compressed files: going back costs more there.
	freeCompressedWork = 16 << 20
	// workPerByte is how many more may be for each that was passed.
	workPerByte = 4
	// decodedPerWork is how many decompressed bytes count like one that was read. Records
	// shrink by less, so that a damaged one earns what it costs when it is passed.
	decodedPerWork = 64
	// farBytes are read at once of what is not in memory.
	farBytes = 1 << 10
	// fieldHead is what tag and length of a field take at most, in bytes.
	fieldHead = 2 * binary.MaxVarintLen64
)

// findPrefixed finds the next place where a length is followed by a ProfilesData
// message of that length, and that by the end of the file or what begins like
// another one. What it looks at in vain is at most in proportion to what it passes:
// places are not tried while it is more.
func (r *Reader) findPrefixed(from int64) (int64, error) {
	s := search{r: r}
	r.source.seek(from)
	for {
		if len(r.source.peek(prefixSize+1)) <= prefixSize {
			return r.source.size, nil
		}
		s.near = view{at: r.source.offset(), bytes: r.source.peek(r.source.buffered.Buffered())}
		passed := len(s.near.bytes) - prefixSize
		for i := range passed {
			if tag := s.near.bytes[i+prefixSize]; tag != resourceProfilesTag && tag != dictionaryTag {
				continue
			}
			length := r.length(s.near.bytes[i:])
			if length == 0 || r.work-workPerByte*int64(i) >= freeWork {
				continue
			}
			at := s.near.at + int64(i)
			if fits, err := s.recordsAt(at, length); err != nil {
				return 0, err
			} else if !fits {
				continue
			}
			if found, err := r.try(at); err != nil || found && isProfilesData(r.record) {
				return at, err
			}
			r.work += length + 2*sourceBuffer
			passed = i + 1
			break
		}
		r.work -= workPerByte * int64(passed)
		r.source.seek(s.near.at + int64(passed))
	}
}

// search looks for records by their shape.
type search struct {
	r         *Reader
	near, far view
	trail     trail
}

// view is a part of the file that is in memory.
type view struct {
	at    int64
	bytes []byte
}

// trail is where resources follow one another that were looked at before: most places
// that are looked at lie on the same one.
type trail struct {
	at     int64 // of a field
	fields int   // from there to the end
	end    trailEnd
}

// trailEnd is where resources and a dictionary end. Where the file ends before, they
// end not before that place.
type trailEnd struct {
	at   int64 // 0 where these are none
	torn bool
}

// recordsAt says whether there is at a place what has the shape of a record of that
// length, and behind it that of another one, as far as the file goes, or nothing.
func (s *search) recordsAt(at, length int64) (bool, error) {
	next := at + prefixSize + length
	if next > s.r.source.size {
		return false, nil
	}
	if fits, err := s.messageAt(at+prefixSize, next); !fits || err != nil {
		return false, err
	}
	head, err := s.bytesAt(next, prefixSize)
	if err != nil || len(head) < prefixSize {
		return err == nil, err
	}
	// What is too long to be read here is a record all the same.
	if length = int64(binary.BigEndian.Uint32(head)); length == 0 || length > s.longest() {
		return false, nil
	}
	return s.messageAt(next+prefixSize, next+prefixSize+length)
}

// messageAt says whether there may be a ProfilesData message from a place to another,
// as far as the file goes. The dictionary is its last field, or its first as pdata
// writes it.
func (s *search) messageAt(at, to int64) (bool, error) {
	next, tag, err := s.fieldAt(at)
	if err != nil || tag == 0 {
		return false, err
	}
	size := s.r.source.size
	if tag == dictionaryTag {
		for next > 0 && next < min(to, size) {
			if next, tag, err = s.fieldAt(next); err != nil || tag != resourceProfilesTag {
				return false, err
			}
		}
		return next == to || to > size && next < to, nil
	}
	end, err := s.follow(at)
	if end.torn {
		return to > size && to >= end.at, err
	}
	return end.at == to, err
}

// follow goes from resource to resource, from a place on, until that is the trail.
func (s *search) follow(at int64) (trailEnd, error) {
	if err := s.advance(&s.trail, at); err != nil {
		return trailEnd{}, err
	}
	size := s.r.source.size
	walked, joining := trail{at: at}, s.trail
	for done := false; !done; {
		if err := s.advance(&joining, at); err != nil {
			return trailEnd{}, err
		}
		if joining.at == at && joining.fields > 0 {
			walked.end, walked.fields = joining.end, walked.fields+joining.fields
			break
		}
		next, tag, err := s.fieldAt(at)
		if err != nil {
			return trailEnd{}, err
		}
		walked.fields++
		done = true
		switch {
		case tag == 0:
		case tag == dictionaryTag && next > 0:
			walked.end.at = next
		case next == 0 || next >= size:
			walked.end = trailEnd{at: max(next, size), torn: true}
		default:
			at, done = next, false
		}
	}
	if walked.fields > s.trail.fields {
		s.trail = walked
	}
	return walked.end, nil
}

// advance leaves out what of a trail is before a place.
func (s *search) advance(t *trail, at int64) error {
	for t.fields > 0 && t.at < at {
		next, _, err := s.fieldAt(t.at)
		if err != nil {
			return err
		}
		t.at, t.fields = next, t.fields-1
	}
	return nil
}

// fieldAt gives the tag of a field of a ProfilesData message, or 0 if there is none,
// and the place behind it. That is 0 where the file ends before the field has begun.
func (s *search) fieldAt(at int64) (next int64, tag uint64, err error) {
	s.r.work++
	head, err := s.bytesAt(at, fieldHead)
	if err != nil {
		return 0, 0, err
	}
	if len(head) == 0 {
		return 0, resourceProfilesTag, nil
	}
	tag, n := binary.Uvarint(head)
	if n <= 0 || tag != resourceProfilesTag && tag != dictionaryTag {
		return 0, 0, nil
	}
	size, m := binary.Uvarint(head[n:])
	switch {
	case m == 0 && len(head) < fieldHead:
		return 0, tag, nil
	case m <= 0 || size > uint64(s.longest()):
		return 0, 0, nil
	}
	return at + int64(n+m) + int64(size), tag, nil
}

func (s *search) longest() int64 { return int64(max(s.r.max, MaxRecordSize)) }

// bytesAt gives n bytes from a place on, or what the file has of them, and leaves the
// source where it is.
func (s *search) bytesAt(at int64, n int) ([]byte, error) {
	for _, v := range []view{s.near, s.far} {
		if from := at - v.at; from >= 0 && from+int64(n) <= int64(len(v.bytes)) {
			return v.bytes[from : from+int64(n)], nil
		}
	}
	s.far = view{at: at, bytes: slices.Grow(s.far.bytes[:0], farBytes)[:farBytes]}
	got, err := s.r.source.section.ReadAt(s.far.bytes, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	s.far.bytes = s.far.bytes[:got]
	s.r.work += int64(got)
	return s.far.bytes[:min(n, got)], err
}

func (r *Reader) try(at int64) (found bool, err error) {
	_, _, err = r.scan(at)
	if _, ok := errors.AsType[damage](err); ok {
		return false, nil
	}
	return err == nil, err
}

// length reads a length, and gives 0 for one that no record has.
func (r *Reader) length(prefix []byte) int64 {
	n := int64(binary.BigEndian.Uint32(prefix))
	if n > int64(r.max) {
		return 0
	}
	return n
}
