// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"bytes"
	"encoding/binary"
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

const (
	keySize = 16          // the size of a key in bytes; the last ones are its length and the number of the event
	maxKey  = keySize - 2 // the fields that it has room for
	longKey = maxKey + 1  // the length of a key that is a hash of its fields
)

// row returns the number of the row of the sample with these fields.
func (d *decoder) row(e *event, fields []byte) (number int32, err error) {
	n := len(fields)
	if n > maxKey || cap(fields) < keySize { // or at the end of the chunk
		return d.longRow(e, fields, maphash.Bytes(seed, fields))
	}
	b := fields[:keySize] // with other bytes at its end
	key := jfr.Key{Low: binary.LittleEndian.Uint64(b), High: binary.LittleEndian.Uint64(b[8:])}
	if n < 8 {
		key.Low &= 1<<(8*n) - 1
	}
	key.High = key.High&(1<<(8*max(n, 8)-64)-1) | uint64(n)<<48 | uint64(e.number)<<56
	known, err := d.rowNumbers.Put(&d.Memory, key)
	if err != nil {
		return 0, err
	}
	number, isKnown := known.Number()
	if !isKnown {
		return d.addRow(known, row{})
	}
	return number, nil
}

// addRow adds a row whose first sample is the current event.
func (d *decoder) addRow(known *jfr.Value, r row) (number int32, err error) {
	r.at, number = int32(d.Event), int32(len(d.rows))
	known.SetNumber(number)
	d.rows, err = jfr.Append(&d.Memory, d.rows, r)
	return number, err
}

// seed keys the hashes of long keys.
var seed = maphash.MakeSeed()

// longRow is row for fields that are not in a key. Keys of rows with equal hashes count up.
func (d *decoder) longRow(e *event, fields []byte, hash uint64) (number int32, err error) {
	for key := (jfr.Key{Low: hash, High: longKey<<48 | uint64(e.number)<<56}); ; key.High++ {
		known, err := d.rowNumbers.Put(&d.Memory, key)
		if err != nil {
			return 0, err
		}
		number, isKnown := known.Number()
		if !isKnown {
			if d.longKeys, err = jfr.Room(&d.Memory, d.longKeys, len(fields)); err != nil {
				return 0, err
			}
			start := int32(len(d.longKeys))
			d.longKeys = append(d.longKeys, fields...)
			return d.addRow(known, row{key: [2]int32{start, int32(len(d.longKeys))}})
		}
		if r := &d.rows[number]; bytes.Equal(d.longKeys[r.key[0]:r.key[1]], fields) {
			return number, nil
		}
	}
}
