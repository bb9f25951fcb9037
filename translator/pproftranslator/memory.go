// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"fmt"
	"hash/maphash"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
)

// Approximate memory of an entry in the decoder, in bytes.
const (
	stringEntrySize   = 13 + 4 // with its number as a key
	mappingEntrySize  = 56
	functionEntrySize = 44
	locationEntrySize = 40
	lineEntrySize     = 32
	frameEntrySize    = 9
	sampleEntrySize   = 48  // with its identity, besides its frames and values
	labelEntrySize    = 128 // of a distinct label
	setEntrySize      = 16  // of a label in a set
	minMemory         = 16 << 10
	roomSize          = 20 // in tables
)

// Memory is about how many bytes of memory the translation of a message takes, except for those of the message, rather more
// than less: work, which ends with it, and its result. It counts entries, and takes them to be distinct. It does not look for
// errors, nor for texts that are in the result again and again.
func (u *Unmarshaler) Memory(message []byte) (work, result int64) {
	d := decoder{payload: payload{data: message, limits: u.Limits.withDefaults()}}
	if d.readHeader() != nil {
		return 0, 0 // the translation ends there
	}
	count := func(field int) int { return d.header.entries[field].Count }
	n, types := d.countSamples(), len(d.header.sampleTypes)
	texts := 0 // bytes
	_ = d.each(profileString, func(c *wire.Cursor) error {
		texts += dictionary.ValidSize(c.Data[c.At:c.End])
		return nil
	})
	samples, lines := count(profileSample), d.countLines()
	decoder := stringEntrySize*count(profileString) + mappingEntrySize*count(profileMapping) + functionEntrySize*count(profileFunction) +
		locationEntrySize*count(profileLocation) + lineEntrySize*lines + frameEntrySize*n.frames + (sampleEntrySize+8*types)*samples +
		labelEntrySize*n.distinct + setEntrySize*n.sets + roomSize*(count(profileString)+count(profileFunction)+count(profileLocation)+samples) + texts
	entries := dictionary.Room{
		Strings: count(profileString), StringBytes: texts, Functions: count(profileFunction),
		Locations: count(profileLocation), Lines: lines, Stacks: samples, Frames: n.frames,
	}.OutputSize() + labelEntrySize*n.distinct + attributeIndexSize*n.labels*types
	values := types * samples
	size := entries + sampleSize*values
	if sampleSize*values > zerosLimit(message) {
		size = entries + sampleSize*d.countKept() + valueSize*values
	}
	mappings := min(count(profileMapping), count(profileLocation)) // that locations refer to
	return int64(minMemory + decoder), int64(size + size/8 + mappingSize*mappings + texts + profileSize*(types+1))
}

// sampleCounts counts what all samples have.
type sampleCounts struct {
	frames, labels int
	sets           int // labels, of runs that come again and again once
	distinct       int // labels that do not come again and again
}

func (d *decoder) countSamples() (n sampleCounts) {
	var runs [256]uint64    // hashes
	var labels [4096]uint32 // parts of hashes
	var label wire.Cursor
	_ = d.each(profileSample, func(c *wire.Cursor) error {
		var run position
		count := 0
		for start := c.At; c.Next(); start = c.At {
			switch c.Field {
			case sampleLocation:
				n.frames += c.CountRepeated()
			case sampleLabel:
				if count++; count == 1 {
					run.start = uint32(start)
				}
				run.stop = uint32(c.At)
			}
		}
		if count == 0 {
			return nil
		}
		n.labels += count
		hash := maphash.Bytes(runSeed, d.data[run.start:run.stop])
		known := &runs[uint8(hash)]
		if *known == hash {
			return nil
		}
		*known = hash
		n.sets += count
		for all := (wire.Cursor{Data: d.data, At: int(run.start), End: int(run.stop)}); all.NextOf(sampleLabel, &label); {
			hash := maphash.Bytes(runSeed, d.data[label.At:label.End])
			if known := &labels[hash%uint64(len(labels))]; *known != uint32(hash>>32) {
				*known, n.distinct = uint32(hash>>32), n.distinct+1
			}
		}
		return nil
	})
	return n
}

// countKept counts the values of all samples that are not 0, and one of each sample of zeros.
func (d *decoder) countKept() (kept int) {
	var values []uint64
	_ = d.each(profileSample, func(c *wire.Cursor) error {
		values = values[:0]
		for c.Next() {
			if c.Field == sampleValue {
				values = c.AppendRepeated(values, len(d.header.sampleTypes))
			}
		}
		before := kept
		for _, v := range values {
			if v != 0 {
				kept++
			}
		}
		kept = max(kept, before+1)
		return nil
	})
	return kept
}

// Sizes in pdata, in bytes: of a Profile without samples, of a sample with its only
// value and the pointer to it, and of an event. A value takes valueSize before that.
const (
	profileSize        = 384
	sampleSize         = 112
	eventSize          = 16
	valueSize          = 16
	mappingSize        = 256 // with its attributes, besides their texts
	attributeIndexSize = 4   // of a sample
)

// sizeOf returns about the memory that pd takes, with its events.
func (d *decoder) sizeOf(pd pprofile.Profiles) int {
	types := len(d.header.sampleTypes)
	size := d.size(pd.SampleCount() - types*d.events.identities.Len())
	return size + size/8 + d.tables.StringsOutputSize() + 2*profileSize*(types+1)
}

// size returns about the memory that the result takes if it has so many samples without
// a timestamp.
func (d *decoder) size(samples int) int {
	types := len(d.header.sampleTypes)
	return d.tables.OutputSize() + types*(eventSize*len(d.events.rows)+sampleSize*d.events.identities.Len()+attributeIndexSize*d.indices) +
		sampleSize*samples
}

// allowance is how many bytes the result of a translation may take.
type allowance struct {
	bytes int
	more  func(needed int64) (allowed int64, err error) // nil if it can never take more
}

// checkSize ends the translation if its result takes too much memory even if zeros are omitted.
func (d *decoder) checkSize() error {
	return d.checkResult(d.size(d.matrix.kept) + valueSize*len(d.matrix.values))
}

// takeText ends the translation before so many bytes of text go into a result that may not be so large.
func (d *decoder) takeText(size int) error {
	d.texts += size
	return d.checkResult(d.size(0) + size)
}

// maxTexts is how many bytes of text may be read for attribute values: one text may be that of many labels.
func (d *decoder) maxTexts() int { return 256*len(d.data) + 32<<20 }

// checkResult makes sure that the result may take so many bytes.
func (d *decoder) checkResult(size int) error {
	if size <= d.allowed.bytes && d.texts <= d.maxTexts() { // inlined
		return nil
	}
	return d.allowMore(size)
}

func (d *decoder) allowMore(size int) error {
	if limit := d.maxTexts(); d.texts > limit {
		return &LimitError{What: fmt.Sprintf("bytes of repeated texts in labels and build ids of %d bytes of pprof", len(d.data)), Limit: int64(limit)}
	}
	if d.allowed.more == nil {
		return &LimitError{What: fmt.Sprintf("bytes of memory for the OTLP of %d bytes of pprof", len(d.data)), Limit: int64(d.allowed.bytes)}
	}
	bytes, err := d.allowed.more(int64(size))
	if err == nil {
		d.allowed.bytes = int(bytes)
	}
	return err
}

// zerosLimit is how many bytes of memory the values of all samples may take before those that are 0 are left out: a missing
// value is 0. A Go heap has four types, of which half are 0 in most samples.
func zerosLimit(message []byte) int { return 16*len(message) + 2<<20 }

func (d *decoder) omitsZeros() bool {
	return sampleSize*d.header.entries[profileSample].Count*len(d.header.sampleTypes) > d.zeros
}
