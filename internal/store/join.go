// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// errStays means that the records of a file stay as they are: one is too large to be decoded here, readers reject it, or the process ends.
var errStays = errors.New("a record is large or malformed, or the process ends")

// join replaces an open file that is complete by one of few records that have the same Profiles, and its index: each of them has those of one
// profile type, and their names once. The other file is complete and on the disk when it takes the name, so that a crash leaves one or the other. If it is not
// joined, the file is as it was; the error is nil if nothing can be gained. The Writer joins those of no other file
// meanwhile.
func (f *partialFile) join(w *Writer) (isJoined bool, err error) {
	if f.format != segment.Proto || len(f.records) < 2 {
		return false, nil
	}
	making := f.stem + layout.MakingSuffix
	f.making = true
	to, err := f.dir.Create(making)
	if err != nil {
		return false, fmt.Errorf("create %s: %w", making, err)
	}
	into, _ := NewSegmentWriter(to, w.memory, nil) // nothing is written
	j := &joiner{from: f, to: into}
	err = panics.Guarded(func() error { return j.join(w, making) })()
	if err != nil {
		_ = to.Close() // it is removed
		into.index.Release()
		_ = f.removeMaking() // otherwise finish or recovery does
		if errors.Is(err, errStays) {
			err = nil
		}
		return false, err
	}
	_ = f.file.Close() // it has no name any more
	f.index.Release()
	f.file, f.info, f.records, f.index, f.making = to, j.info, into.records, into.index, false
	f.Size, f.Raw, f.Records, f.IndexError = j.size, into.raw, len(into.records), into.index.Incomplete()
	f.torn = true // the index comes after Size
	return true, nil
}

// removeMaking removes what a failed join has left.
func (f *partialFile) removeMaking() error {
	if !f.making {
		return nil
	}
	if err := f.dir.Remove(f.stem + layout.MakingSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f.making = false
	return nil
}

// joiner writes the records of a file into another one.
type joiner struct {
	from *partialFile
	to   *SegmentWriter
	size int64       // of the records in it, in bytes
	info fs.FileInfo // of its file

	types []*joinedType
	// profiles is about the memory in bytes of what is joined, and wire its size, both without dictionaries.
	profiles, wire int64
}

func (j *joiner) join(w *Writer, making string) error {
	if err := j.joinRecords(w); err != nil {
		return err
	}
	j.size = j.to.size
	_, err := j.to.End(nil)
	if err == nil {
		j.info, err = j.to.file.Stat()
	}
	if err == nil {
		err = j.from.dir.Replace(making, j.from.base())
	}
	return err
}

func (j *joiner) joinRecords(w *Writer) error {
	w.join.Lock()
	defer w.join.Unlock()
	if w.ending.Load() {
		return errStays
	}
	reader := segment.NewReader(j.from.file, 0, j.from.Size, segment.Proto, segment.MaxRecordMemory)
	defer reader.Close()
	for _, r := range j.from.records {
		data, err := reader.Record(r)
		if err == nil {
			err = j.add(data)
		}
		if err != nil {
			return err
		}
	}
	err := j.flush()
	j.types = nil
	return err
}

// joinedType is what is joined of a profile type.
type joinedType struct {
	name   string
	joined *dictionary.Joiner
	parts  []dictionary.Part // of the record that is being added
}

// maxTypes is how many profile types have records of their own in a file. The others share those of the last one.
const maxTypes = 16

// maxJoined bounds the size in bytes of joined records. A gRPC server accepts 4 MiB by default: what can be sent alone can be sent joined.
const maxJoined = 3 << 20

// add adds a record, and writes those before it if all together would be large.
func (j *joiner) add(data []byte) error {
	pd, err := Decode(segment.Proto, data, segment.MaxRecordMemory)
	if err == nil {
		err = dictionary.Check(pd)
	}
	if err == nil {
		pd, err = dictionary.ResolveStrings(pd)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errStays, err)
	}
	memory, size := j.sizes()
	if j.profiles > 0 && (memory+DecodedSize(segment.Proto, data) > segment.MaxRecordMemory || size+int64(len(data)) > maxJoined) {
		if err := j.flush(); err != nil {
			return err
		}
	}
	profiles, size := resourcesSize(data)
	j.profiles, j.wire = j.profiles+profiles, j.wire+size
	text := func(i int32) string { return dictionary.ValidString(pd.Dictionary().StringTable(), i) }
	for i, rp := range pd.ResourceProfiles().All() {
		for k, sp := range rp.ScopeProfiles().All() {
			of := j.ofType(sampletypes.ProfileType(sp.Scope().Attributes(), sampletypes.Of(sp, text)))
			if n := len(of.parts); n > 0 && of.parts[n-1].Resource == i {
				of.parts[n-1].Scopes = append(of.parts[n-1].Scopes, k)
			} else {
				of.parts = append(of.parts, dictionary.Part{Resource: i, Scopes: []int{k}})
			}
		}
	}
	for _, of := range j.types {
		if len(of.parts) == 0 {
			continue
		}
		if err := of.joined.Add(pd, of.parts); err != nil {
			return err
		}
		of.parts = of.parts[:0]
	}
	return nil
}

func (j *joiner) ofType(name string) *joinedType {
	for _, of := range j.types {
		if of.name == name {
			return of
		}
	}
	if len(j.types) == maxTypes {
		return j.types[maxTypes-1]
	}
	of := &joinedType{name: name, joined: dictionary.NewJoiner()}
	j.types = append(j.types, of)
	return of
}

// sizes estimates the memory in bytes of what is joined, and its size as messages.
func (j *joiner) sizes() (memory, size int64) {
	memory, size = j.profiles, j.wire
	for _, of := range j.types {
		memory += int64(of.joined.TablesSize())
		size += int64(of.joined.WireSize())
	}
	return memory, size
}

// resourcesSize estimates the memory in bytes that a record takes without its dictionary, and returns the size of that.
func resourcesSize(data []byte) (memory, size int64) {
	const resourceProfiles = 1
	var m wire.Meter
	c := wire.New(data)
	for at := 0; c.Next(); at = c.At {
		if c.Field == resourceProfiles {
			_, _ = m.Write(data[at:c.At]) // Decode has read it
			size += int64(c.At - at)
		}
	}
	return m.Size, size
}

// flush writes what is joined.
func (j *joiner) flush() error {
	j.profiles, j.wire = 0, 0
	for _, of := range j.types {
		if pd := of.joined.Take(); pd.ResourceProfiles().Len() > 0 {
			if err := j.write(pd); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *joiner) write(pd pprofile.Profiles) error {
	entry, err := contents.Describe(pd)
	if err != nil {
		return fmt.Errorf("%w: %w", errStays, err)
	}
	pd.MarkReadOnly() // otherwise its resources would get references in place of strings
	data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	if err != nil {
		return err
	}
	return j.to.Add(data, entry)
}
