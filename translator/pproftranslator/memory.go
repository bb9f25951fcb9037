// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// memory accounts for the memory of a translation: the decoder as it grows, and the result.
type memory struct {
	reserve   func(bytes int64) error // may be nil
	before    int                     // bytes that the decoder kept from earlier payloads
	reserved  int                     // bytes
	maps      int                     // bytes of maps by id
	checkAt   int                     // the size of the result in bytes at which to reserve more
	omitZeros bool                    // there is no memory for zeros
}

// Approximate memory of an entry in the decoder, in bytes.
const (
	stringEntrySize   = 12 + 4 // with its number as a key
	mappingEntrySize  = 20
	functionEntrySize = 32
	locationEntrySize = 24
	sampleEntrySize   = 4  // besides its stack
	roomSize          = 32 // in tables
)

// mapSize is the memory of a map by id with room for n entries: slots, of which an eighth is free,
// in a number that is a power of two.
func mapSize(n int) int { return (8 + 8 + 1) << bits.Len(uint(n+n/7)) }

// minStep is the least by which the result grows between two reservations, in bytes.
const minStep = 64 << 10

// reserve reserves bytes in addition to those by which the decoder has grown.
func (d *decoder) reserve(bytes int) error {
	m := &d.memory
	if m.reserve == nil {
		return nil
	}
	if bytes += d.retained() + m.maps - m.before; bytes > m.reserved {
		if err := m.reserve(int64(bytes)); err != nil {
			return err
		}
		m.reserved = bytes
	}
	return nil
}

// grown returns s with room for n elements in total, after reserving their memory.
func grown[E any](d *decoder, s []E, n int) ([]E, error) {
	if err := d.reserve(n * int(unsafe.Sizeof(*new(E)))); err != nil {
		return s, err
	}
	return append(make([]E, 0, n), s...), nil
}

// reserveEntries reserves memory for the entries of the header.
func (d *decoder) reserveEntries() error {
	count := func(field int) int { return d.header.entries[field].Count }
	return d.reserve(stringEntrySize*count(profileString) + mappingEntrySize*count(profileMapping) +
		functionEntrySize*count(profileFunction) + locationEntrySize*count(profileLocation) + sampleEntrySize*count(profileSample))
}

// reserveSamples reserves memory for a result of this size, for one step of its growth, and for the
// growth of the decoder meanwhile. A decoder that was larger before does not grow for a small result.
func (d *decoder) reserveSamples(size int) error {
	step := max(minStep, size/8)
	d.memory.checkAt = size + step
	result := d.resultSize(size + step)
	return d.reserve(result + min(d.retained(), result)/4)
}

// reserveResult reserves the memory of the result. If only zeros make it too large, they
// are omitted.
func (d *decoder) reserveResult() error {
	if d.memory.reserve == nil {
		return nil
	}
	if !d.omitsZeros() {
		err := d.reserve(d.resultSize(d.size(d.valueCount())))
		if _, tooLarge := errors.AsType[*LimitError](err); !tooLarge {
			return err
		}
		d.memory.omitZeros = true
	}
	kept := 0
	for i := range d.matrices {
		kept += d.matrices[i].kept
	}
	return d.reserve(d.resultSize(d.size(kept)))
}

// resultSize returns about the memory that a result takes for which d.size returns size.
func (d *decoder) resultSize(size int) int {
	return size + size/8 + d.tables.StringsOutputSize() + profileSize*(len(d.matrices)+1)*(len(d.header.sampleTypes)+1)
}

// sizeOf returns about the memory that pd takes, with its events.
func (d *decoder) sizeOf(pd pprofile.Profiles) int {
	timed := len(d.header.sampleTypes) * d.events.identities.Len()
	return d.resultSize(d.size(pd.SampleCount() - timed))
}

// Sizes in pdata, in bytes: of a Profile without samples, of a sample with its only
// value and the pointer to it, and of an event. A value takes valueSize before that.
const (
	profileSize = 384
	sampleSize  = 112
	eventSize   = 16
	valueSize   = 16
)

// size returns about the memory that the result takes if it has so many samples without
// a timestamp.
func (d *decoder) size(samples int) int {
	types := len(d.header.sampleTypes)
	return d.tables.OutputSize() + types*(eventSize*len(d.events.rows)+sampleSize*d.events.identities.Len()) + sampleSize*samples
}

func (d *decoder) expansionLimit() int { return d.limits.Expansion*len(d.data) + 1<<20 }

// checkSize rejects a payload that takes too much memory as OTLP even if zeros are
// omitted, and reserves this memory from time to time.
func (d *decoder) checkSize() error {
	kept, values := 0, 0
	for i := range d.matrices {
		kept += d.matrices[i].kept
		values += len(d.matrices[i].values)
	}
	size := d.size(kept)
	d.unchecked = 0
	if err := d.checkExpansion(size + valueSize*values); err != nil {
		return err
	}
	if size < d.memory.checkAt {
		return nil
	}
	return d.reserveSamples(size)
}

// takeText accounts for so many bytes of text before they go into the result, small ones together: it rejects them if
// the result may not be so large, and reserves their memory.
func (d *decoder) takeText(size int) error {
	if d.unchecked += size; d.unchecked < minStep {
		return nil
	}
	d.unchecked = 0
	if err := d.checkExpansion(d.size(0) + size); err != nil {
		return err
	}
	more := 2 * size // in the decoder and in the result
	if size >= minStep {
		more += d.tables.Retained() // they may grow to twice their size
	}
	return d.reserve(d.resultSize(d.size(0)) + more)
}

// maxRereads is how often the result at its limit could be written before a payload is rejected for the
// text of its attribute values: one text may be that of many labels.
const maxRereads = 32

// checkExpansion rejects a payload that takes so many bytes as OTLP.
func (d *decoder) checkExpansion(size int) error {
	if limit := maxRereads * d.expansionLimit(); d.texts > limit {
		return &LimitError{What: fmt.Sprintf("bytes of repeated texts in labels and build ids of %d bytes of pprof", len(d.data)), Limit: int64(limit)}
	}
	if limit := d.expansionLimit(); size > limit {
		return &LimitError{What: fmt.Sprintf("bytes as OTLP of %d bytes of pprof", len(d.data)), Limit: int64(limit)}
	}
	return nil
}

// zerosAllowance is how many times over the limit a payload may be because of zeros: a
// Go heap has four types, of which half are 0 in most samples.
const zerosAllowance = 2

// omitsZeros reports whether zeros take so much memory that they must be omitted.
func (d *decoder) omitsZeros() bool {
	return d.memory.omitZeros || d.size(d.valueCount()) > zerosAllowance*d.expansionLimit()
}

// valueCount is the number of values without a timestamp.
func (d *decoder) valueCount() (n int) {
	for i := range d.matrices {
		n += len(d.matrices[i].values)
	}
	return n
}
