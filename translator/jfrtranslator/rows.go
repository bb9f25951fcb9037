// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"bytes"
	"hash/maphash"

	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"
)

// row has the samples of a chunk that have equal fields, except for their time and values.
type row struct {
	at     int32 // where the first one is
	family family
	number int32    // in the family
	key    [2]int32 // of a long one: where it is in decoder.longKeys
	values [2]int64
}

// Where in a key the number of the event and, if it is a hash of its fields, longKey in place of a length are.
const (
	eventShift  = 56
	lengthShift = 48
	longKey     = 15
)

// seed keys the hashes of long keys.
var seed = maphash.MakeSeed()

// hashOf returns the hash of the fields of a row. A test replaces it.
var hashOf = func(fields []byte) uint64 { return maphash.Bytes(seed, fields) }

// row returns the number of the row of the sample with these fields, which is a new one if the current event is the first
// with them. Long keys of equal hashes count up.
func (d *decoder) row(e *event, fields []byte) (number int32) {
	key, short := jfr.KeyOf(fields)
	if !short {
		key = jfr.Key{Low: hashOf(fields), High: longKey << lengthShift}
	}
	for key.High |= uint64(e.number) << eventShift; ; key.High++ {
		known := d.rowNumbers.Put(&d.Memory, key)
		number, isKnown := known.Number()
		if !isKnown {
			number = d.addRow(fields, short)
			known.SetNumber(number)
			return number
		}
		if short || bytes.Equal(d.longKeys[d.rows[number].key[0]:d.rows[number].key[1]], fields) {
			return number
		}
	}
}

// addRow adds a row whose first sample is the current event.
func (d *decoder) addRow(fields []byte, short bool) (number int32) {
	r := row{at: int32(d.Event)}
	if !short {
		r.key[0] = int32(len(d.longKeys))
		if d.longKeys = jfr.Grow(&d.Memory, d.longKeys, len(fields)); d.Err == nil {
			d.longKeys = append(d.longKeys, fields...)
		}
		r.key[1] = int32(len(d.longKeys))
	}
	d.rows = jfr.Append(&d.Memory, d.rows, r)
	return int32(len(d.rows) - 1)
}
