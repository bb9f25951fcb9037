// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"math"

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

// timedValue is a sample whose time is kept.
type timedValue struct {
	row    int32
	time   uint64
	values [2]int64
}

// readEvents reads the samples and finds the constants of the chunk.
func (d *decoder) readEvents() error {
	var c jfr.Cursor
	var e *event
	last := uint64(jfr.TypeMetadata)
	for d.Err == nil {
		typeID, more, err := d.NextEvent(&c)
		switch {
		case err != nil || !more:
			return err
		case typeID == jfr.TypeCheckpoint:
			if err := d.ReadCheckpoint(&c); err != nil {
				return d.At("checkpoint", err)
			}
			continue
		case typeID == jfr.TypeMetadata:
			continue
		}
		if typeID != last { // many events of a type follow each other
			e, last = d.eventOf(typeID), typeID
		}
		switch {
		case e == nil:
			d.report.OtherEvents++
		case e.family == familySettings:
			d.report.OtherEvents++
			d.settingsAt = jfr.Append(&d.Memory, d.settingsAt, int32(d.Event))
		case d.replaced&e.replacedBy != 0:
			d.report.ReplacedSamples++
		default:
			if err := d.readSample(&c, e); err != nil {
				return err
			}
		}
	}
	return d.Err
}

// readSample adds the values of a sample to its row.
func (d *decoder) readSample(c *jfr.Cursor, e *event) (err error) {
	start := c.At
	if n := len(c.Data) - c.At + jfr.KeySize; n > cap(d.key) {
		if d.key = jfr.Grow(&d.Memory, d.key[:0], n); d.Err != nil {
			return d.Err
		}
	}
	v := [scanSlots]uint64{slotCount: 1}
	key := d.Read(c, e.scan, v[:], d.key[:0])
	switch { // readRow finds out whether the rest is malformed
	case e.keyLast && len(key) == 0: // a copy of it would take 5 % of the time
		key = c.Data[c.At:]
	case e.keyLast:
		key = append(key, c.Data[c.At:]...)
	}
	if c.Err != nil {
		return d.readError(c, start, e)
	}
	first, second := int64(1), int64(0)
	if v[slotCount] != 1 || v[slotAmount] != 0 || e.isFloat {
		if first, second, err = d.measure(e, &v); err != nil {
			return d.At(string(d.Meta.Classes[e.class].Name), err)
		}
	}
	number := d.row(e, key)
	if d.options.Timestamps || d.Header.Unfinished {
		time := d.Header.Time(int64(v[slotStart]))
		d.last = max(d.last, time)
		if d.options.Timestamps && e.family != familyLive {
			d.timedValues = jfr.Append(&d.Memory, d.timedValues, timedValue{number, time, [2]int64{first, second}})
			return nil
		}
	}
	if err := add(&d.rows[number].values, first, second); err != nil {
		return d.At(string(d.Meta.Classes[e.class].Name), err)
	}
	return nil
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

// row returns the number of the row of the sample with these fields. It is a new one if the current event is the first
// with them. Long keys with equal hashes count up.
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

var errWeight = errors.New("the weight is not a number, or its product with the size is more than int64 holds")

// measure returns the values of a sample. Of a family whose second value is the first one times a
// period, the second is 0.
func (d *decoder) measure(e *event, v *[scanSlots]uint64) (first, second int64, err error) {
	amount := d.Header.In(e.unit, d.positive(int64(v[slotAmount])))
	if !e.isFloat {
		first = d.positive(int64(v[slotCount]))
		if second = jfr.Scale(first, amount, 1); first > 1 && second == math.MaxInt64 {
			return 0, 0, errWeight
		}
		return first, second, nil
	}
	weight := math.Float64frombits(v[slotCount])
	if weight < 0 {
		d.report.NegativeValues++
		weight = 0
	}
	product := math.Round(weight * float64(amount))
	if !(product < math.MaxInt64 && weight < math.MaxInt64) {
		return 0, 0, errWeight
	}
	return int64(math.Round(weight)), int64(product), nil
}

// positive returns n, or 0 if it is negative.
func (d *decoder) positive(n int64) int64 {
	if n < 0 {
		d.report.NegativeValues++
	}
	return max(n, 0)
}

// readEvent reads the fields of the event at a position into d.values.
func (d *decoder) readEvent(at int32) (*event, error) {
	clear(d.values)
	for _, s := range []jfr.Slot{slotThread, slotStack, slotState} {
		d.values[s] = noConstant
	}
	var c jfr.Cursor
	typeID, _ := d.EventAt(&c, int(at))
	e, start := d.eventOf(typeID), c.At
	if d.Read(&c, e.read, d.values, nil); c.Err != nil {
		return nil, d.readError(&c, start, e)
	}
	return e, nil
}

// readError says at which field of an event, which starts at a position, reading failed.
func (d *decoder) readError(c *jfr.Cursor, start int, e *event) error {
	return d.At(string(d.Meta.Classes[e.class].Name), fmt.Errorf("field %s: %w", d.FailedField(*c, start, e.class), c.Err))
}

// resolve finds the stack and the attributes of each row, and adds it to its family.
func (d *decoder) resolve() error {
	d.grow()
	for i := range d.rows {
		r := &d.rows[i]
		e, err := d.readEvent(r.at)
		if err != nil {
			return err
		}
		stack := d.number(poolStack, d.values[slotStack], (*decoder).newStack)
		set, link := d.attributesOf(e)
		if r.family = e.family; r.family == familyAsync {
			r.family = d.settings.asyncFamily(d.symbol(poolState, d.values[slotState]))
		}
		f := &d.families[r.family]
		r.number = f.samples.Number(stack, set, link)
		if int(r.number) == len(f.values) {
			f.values = jfr.Append(&d.Memory, f.values, [2]int64{})
			d.sampleBytes += 2 * (sampleSize + rowSize)
		}
		if err := d.checkSize(); err != nil {
			return err
		}
		if err := add(&f.values[r.number], r.values[0], r.values[1]); err != nil {
			return fmt.Errorf("chunk %d: %w", d.Chunk, err)
		}
	}
	d.sampleBytes += eventSize * len(d.timedValues)
	return d.checkSize()
}

var errOverflow = errors.New("the sum of the values of equal samples is more than int64 holds")

// add adds to the values of a sample.
func add(to *[2]int64, first, second int64) error {
	if first > math.MaxInt64-to[0] || second > math.MaxInt64-to[1] {
		return errOverflow
	}
	to[0] += first
	to[1] += second
	return nil
}
