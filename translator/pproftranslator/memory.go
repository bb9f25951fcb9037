// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"fmt"
	"hash/maphash"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// Approximate memory of an entry in the decoder, in bytes.
const (
	stringEntrySize   = 12 + 4 // with its number as a key
	mappingEntrySize  = 20
	functionEntrySize = 32
	locationEntrySize = 24
	lineEntrySize     = 24
	frameEntrySize    = 5
	sampleEntrySize   = 48  // with its identity, besides its frames and values
	labelEntrySize    = 128 // of a distinct label
	minMemory         = 16 << 10
	roomSize          = 20 // in tables
)

// Memory is about how many bytes of memory the translation of a message takes with its result, except for those of the
// message, rather more than less: it counts entries, and takes them to be distinct. It does not look for errors.
func (u *Unmarshaler) Memory(message []byte) int64 {
	d := decoder{data: message, limits: u.Limits.withDefaults()}
	if d.readHeader() != nil {
		return 0 // the translation ends there
	}
	count := func(field int) int { return d.header.entries[field].Count }
	frames, labels := d.countSamples()
	texts, longest := 0, 0 // bytes of all strings, and of the longest
	_ = d.each(profileString, func(c *wire.Cursor) error {
		size := dictionary.ValidSize(c.Data[c.At:c.End])
		texts += size
		longest = max(longest, size)
		return nil
	})
	repeated := 0 // bytes of long texts that are in the result again and again
	if longest > 4<<10 {
		repeated = min((labels+count(profileMapping)+len(d.header.comments))*longest, d.expansionLimit())
	}
	samples, types, lines := count(profileSample), len(d.header.sampleTypes), d.countLines()

	decoder := stringEntrySize*count(profileString) + mappingEntrySize*count(profileMapping) + functionEntrySize*count(profileFunction) +
		locationEntrySize*count(profileLocation) + lineEntrySize*lines + frameEntrySize*frames + (sampleEntrySize+8*types)*samples +
		labelEntrySize*labels + roomSize*(count(profileString)+count(profileFunction)+count(profileLocation)+samples) + texts + repeated
	result := dictionary.Room{
		Strings: count(profileString), StringBytes: texts, Functions: count(profileFunction),
		Locations: count(profileLocation), Lines: lines, Stacks: samples,
	}.OutputSize() + frameSize*frames + labelEntrySize*labels + sampleSize*types*samples + repeated
	return int64(minMemory + decoder + min(result+result/8, zerosAllowance*d.expansionLimit()) + profileSize*(types+1))
}

// countSamples counts the locations of all samples, and their labels: of runs of labels that come again and again, once.
func (d *decoder) countSamples() (frames, labels int) {
	var seen [256]uint64 // hashes
	_ = d.each(profileSample, func(c *wire.Cursor) error {
		var run position
		count := 0
		for start := c.At; c.Next(); start = c.At {
			switch c.Field {
			case sampleLocation:
				frames += c.CountRepeated()
			case sampleLabel:
				if count++; count == 1 {
					run.start = uint32(start)
				}
				run.stop = uint32(c.At)
			}
		}
		if count > 0 {
			hash := maphash.Bytes(runSeed, d.data[run.start:run.stop])
			if known := &seen[uint8(hash)]; *known != hash {
				*known, labels = hash, labels+count
			}
		}
		return nil
	})
	return frames, labels
}

// Sizes in pdata, in bytes: of a Profile without samples, of a sample with its only
// value and the pointer to it, and of an event. A value takes valueSize before that.
const (
	profileSize = 384
	sampleSize  = 112
	eventSize   = 16
	frameSize   = 4
	valueSize   = 16
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
	return d.tables.OutputSize() + types*(eventSize*len(d.events.rows)+sampleSize*d.events.identities.Len()) + sampleSize*samples
}

func (d *decoder) expansionLimit() int { return d.limits.Expansion*len(d.data) + 1<<20 }

// checkSize rejects a payload that takes too much memory as OTLP even if zeros are omitted.
func (d *decoder) checkSize() error {
	return d.checkExpansion(d.size(d.matrix.kept) + valueSize*len(d.matrix.values))
}

// takeText rejects so many bytes of text before they go into the result if that may not be so large.
func (d *decoder) takeText(size int) error {
	d.texts += size
	return d.checkExpansion(d.size(0) + size)
}

// maxRereads is how often the result at its limit could be written before a payload is rejected for the
// text of its attribute values: one text may be that of many labels.
const maxRereads = 32

// checkExpansion rejects a payload that takes so many bytes as OTLP.
func (d *decoder) checkExpansion(size int) error {
	if size <= d.expansion && d.texts <= maxRereads*d.expansion { // inlined
		return nil
	}
	return d.expansionError()
}

func (d *decoder) expansionError() error {
	if limit := maxRereads * d.expansion; d.texts > limit {
		return &LimitError{What: fmt.Sprintf("bytes of repeated texts in labels and build ids of %d bytes of pprof", len(d.data)), Limit: int64(limit)}
	}
	return &LimitError{What: fmt.Sprintf("bytes as OTLP of %d bytes of pprof", len(d.data)), Limit: int64(d.expansion)}
}

// zerosAllowance is how many times over the limit a payload may be because of zeros: a
// Go heap has four types, of which half are 0 in most samples.
const zerosAllowance = 2

// omitsZeros reports whether zeros take so much memory that they must be omitted.
func (d *decoder) omitsZeros() bool {
	return d.size(len(d.matrix.values)) > zerosAllowance*d.expansionLimit()
}
