// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// RecoveredFile describes a file that was not closed by its process. It was closed, or removed because it had no complete record.
type RecoveredFile struct {
	ClosedFile // zero if the file was removed
	// Partial is the path that it had.
	Partial string
	// Truncated is the number of bytes removed from the end.
	Truncated int64
}

// RecoverFile closes a file of which the first size bytes count: it truncates it after the last complete record, makes the index and
// renames it. It does not join records, as compaction soon does. The caller has the lock of its directory.
func RecoverFile(b *layout.Branch, name *layout.File, size int64, now time.Time) (recovered RecoveredFile, err error) {
	base := filepath.Base(name.Path)
	if closed, err := isClosed(b, name); err != nil || closed {
		return RecoveredFile{Partial: filepath.Join(b.Root, filepath.FromSlash(name.Path))}, err
	}
	file, err := b.Dir.Open(base)
	if err != nil {
		return recovered, b.Fail("recover", base, err)
	}
	defer func() { _ = file.Close() }() // after an error, the next recovery continues
	info, err := file.Stat()
	if err != nil {
		return recovered, b.Fail("recover", base, err)
	}
	f := &partialFile{
		ClosedFile: ClosedFile{Path: filepath.Join(b.Root, filepath.FromSlash(name.Path)), Reason: ByError},
		stem:       name.Stem, format: name.Format, created: now, info: info, dir: b.Dir, file: file, torn: true, unsyncedSince: now,
		index: contents.NewBuilder(nil), making: true,
	}
	recovered.Partial = f.Path
	scan := newScan(name.Format, now)
	size = min(size, info.Size())
	if err := scan.readTo(file, size, segment.MaxRecordSize, maxDecoded); err != nil {
		return recovered, b.Fail("recover", base, err)
	}
	f.records, f.index, f.bounds = scan.records, scan.builder, scan.bounds
	f.Records, f.Samples = len(scan.records), scan.samples
	f.Size = scan.end
	recovered.Truncated = size - f.Size
	if err := f.finish(nil); err != nil {
		return recovered, b.Fail("recover", base, err)
	}
	if f.Records > 0 {
		recovered.ClosedFile = f.ClosedFile
	}
	return recovered, nil
}

// maxDecoded bounds the memory in bytes that a record may take when it is decoded to make its index entry.
const maxDecoded = 256 << 20

// scan makes the index of a segment that has none.
type scan struct {
	format  segment.Format
	now     time.Time // a record without a time may be of any time before
	builder *contents.Builder
	records []segment.Record
	bounds  layout.Bounds
	samples int
	end     int64                  // of the last complete record
	damage  []*segment.DamageError // before the end
	tail    []*segment.DamageError // after it
	last    [8]byte                // the last bytes of the last record, for isOf
}

// remember reads what isOf needs.
func (s *scan) remember(from io.ReaderAt) bool {
	at := s.end - int64(len(s.last))
	if at < 0 {
		return false
	}
	_, err := from.ReadAt(s.last[:], at)
	return err == nil
}

// isOf reports whether a file still has what was read: a record that could not be synced may have been replaced by another one.
func (s *scan) isOf(from io.ReaderAt) bool {
	var last [8]byte
	_, err := from.ReadAt(last[:], s.end-int64(len(last)))
	return err == nil && last == s.last
}

func newScan(format segment.Format, now time.Time) *scan {
	return &scan{format: format, now: now, builder: contents.NewBuilder(nil)}
}

// readTo reads the records from the end of the last one to an offset. Of damage at the end, a later call tries again.
func (s *scan) readTo(from io.ReaderAt, size, maxRecord, memory int64) error {
	reader := segment.NewReader(from, s.end, size, s.format, int(min(segment.MaxRecordSize, maxRecord)))
	defer reader.Close()
	s.tail = nil
	for data, err := range reader.All() {
		if damaged, is := errors.AsType[*segment.DamageError](err); is {
			s.tail = append(s.tail, damaged)
			continue
		}
		if err != nil {
			return err
		}
		s.damage, s.tail = append(s.damage, s.tail...), nil
		s.add(data, reader.Start(), reader.Offset(), memory)
	}
	return nil
}

func (s *scan) add(data []byte, start, end, memory int64) {
	entry, err := describe(s.format, data, memory)
	if err != nil {
		entry = nil // readers of the record have the error
	}
	r := segment.Record{Offset: start, Length: end - start}
	if entry == nil {
		s.bounds.Add(0, 0, s.now)
	} else {
		s.bounds.Add(entry.Start, entry.End, s.now)
		s.samples += entry.Samples
	}
	r.Entry = s.builder.Add(entry)
	s.records, s.end = append(s.records, r), end
}

// describe decodes a record and describes it.
func describe(format segment.Format, data []byte, memory int64) (*contents.Entry, error) {
	pd, err := Decode(format, data, memory)
	if err != nil {
		return nil, err
	}
	return contents.Describe(pd)
}

// MemoryError says that a record takes more memory than it may.
type MemoryError struct{ Size, Max int64 }

func (e *MemoryError) Error() string {
	return fmt.Sprintf("the record takes about %.1f MiB of memory, more than %.1f MiB", float64(e.Size)/(1<<20), float64(e.Max)/(1<<20))
}

// Decode decodes a record. The result refers to nothing of it. The error is a *MemoryError if it takes more than memory bytes.
func Decode(format segment.Format, data []byte, memory int64) (pprofile.Profiles, error) {
	size, err := measure(format, data)
	switch {
	case err != nil:
		return pprofile.NewProfiles(), err
	case size > memory:
		return pprofile.NewProfiles(), &MemoryError{size, memory}
	case format == segment.JSON:
		return (&pprofile.JSONUnmarshaler{}).UnmarshalProfiles(data)
	default:
		return (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(data)
	}
}

// DecodedSize estimates the memory in bytes that a record takes when it is decoded; it is 0 if the record is malformed.
func DecodedSize(format segment.Format, data []byte) int64 {
	size, err := measure(format, data)
	if err != nil {
		return 0
	}
	return size
}

func measure(format segment.Format, data []byte) (int64, error) {
	if format == segment.JSON {
		var m wire.JSONMeter
		_, err := m.Write(data)
		return m.Size, err
	}
	var m wire.Meter
	_, err := m.Write(data)
	return m.Size, err
}

// isClosed reports whether a partial file has its other name already, because its process was killed between the two steps of a
// rename. It takes the second one.
func isClosed(b *layout.Branch, partial *layout.File) (bool, error) {
	files, err := b.Files(func(f *layout.File) bool { return !f.Partial && f.Stem == partial.Stem })
	if err != nil || len(files) == 0 {
		return false, err
	}
	base := filepath.Base(partial.Path)
	if err := errors.Join(b.Dir.Remove(base), b.Dir.Sync()); err != nil {
		return false, b.Fail("recover", base, err)
	}
	return true, nil
}
