// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"errors"
	"hash/maphash"
	"math"

	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"
)

// row has the samples of a chunk that have equal fields, except for their time and values. The constants that they
// refer to may come later in the chunk, and reading all fields of each sample took three times as long.
type row struct {
	at     int32 // where the first one is
	family family
	number int32 // in the family
	thread int32 // of an interval: its number in the chunk, or 0
	values [2]int64
}

// timedValue is a sample whose time is known. That of an interval is its end.
type timedValue struct {
	row    int32
	time   uint64
	values [2]int64
}

// readEvents finds the constants of the chunk, its settings and the rows of its samples.
func (d *decoder) readEvents() {
	var e *event
	last := uint64(jfr.TypeMetadata)
	for typeID, c := range d.Events {
		if typeID == jfr.TypeCheckpoint {
			d.ReadCheckpoint(c)
			continue
		}
		if typeID == jfr.TypeMetadata {
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
		case d.replaced&e.replacedBy != 0: // the recording has Datadog's samples of the same
		default:
			d.fail(e, d.readSample(c, e))
		}
	}
}

// seeds key the hashes of fields. With two of them, a collision is as good as impossible.
var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// readSample adds the values of a sample to its row.
func (d *decoder) readSample(c *jfr.Cursor, e *event) error {
	if d.key = jfr.Grow(&d.Memory, d.key[:0], len(c.Data)-c.At+jfr.KeySize); d.Err != nil {
		return d.Err
	}
	v := [slotThread]uint64{slotCount: 1}
	fields := d.Read(c, e.scan, v[:], d.key[:0])
	switch { // resolve finds out whether the rest is malformed
	case c.Err != nil:
		return c.Err
	case e.keyLast && len(fields) == 0: // a copy of it would take 5 % of the time
		fields = c.Data[c.At:]
	case e.keyLast:
		fields = append(fields, c.Data[c.At:]...)
	}
	first, second := int64(1), int64(0) // usually
	if v[slotCount] != 1 || v[slotAmount] != 0 || e.isFloat {
		var err error
		if first, second, err = d.measure(e, &v); err != nil {
			return err
		}
	}
	key, short := jfr.KeyOf(fields)
	if !short {
		key = jfr.Key{Low: maphash.Bytes(seeds[0], fields), High: maphash.Bytes(seeds[1], fields)>>8 | 1<<63}
	}
	key.High |= e.number << 56
	known := d.rowNumbers.Put(&d.Memory, key)
	number, isKnown := known.Number()
	if !isKnown {
		number = int32(len(d.rows))
		known.SetNumber(number)
		if d.rows = jfr.Append(&d.Memory, d.rows, row{at: int32(d.Event)}); d.Err != nil {
			return d.Err
		}
	}
	isInterval := e.reason != 0
	if d.options.Timestamps || d.Header.Unfinished || isInterval {
		time := d.Header.Time(int64(v[slotStart]))
		if isInterval {
			time += min(uint64(second), math.MaxUint64-time)
		}
		d.last = max(d.last, time)
		if d.options.Timestamps && e.family != familyLive || isInterval {
			d.timedValues = jfr.Append(&d.Memory, d.timedValues, timedValue{number, time, [2]int64{first, second}})
			return d.Err
		}
	}
	return add(&d.rows[number].values, first, second)
}

// moveInside moves times outside the chunk to its start or end: the JVM writes the last events of a chunk into the
// next one, and its ticks may differ from the clock.
func (d *decoder) moveInside() {
	start, duration := uint64(max(d.Header.Start, 0)), uint64(max(d.Header.Duration, 0))
	if d.Header.Unfinished || duration == 0 {
		return
	}
	for i := range d.timedValues {
		t := &d.timedValues[i]
		if inside := min(max(t.time, start), start+duration-1); inside != t.time {
			t.time = inside
			d.report.OutsideTimes++
		}
	}
}

var errWeight = errors.New("the weight is not a number, or its product with the size is more than int64 holds")

// measure returns the values of a sample. Of a family whose second value is the first one times a
// period, the second is 0.
func (d *decoder) measure(e *event, v *[slotThread]uint64) (first, second int64, err error) {
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
func (d *decoder) readEvent(at int32) *event {
	var c jfr.Cursor
	typeID, _ := d.EventAt(&c, int(at))
	e := d.eventOf(typeID)
	d.values = append(d.values[:0], e.defaults...)
	d.Read(&c, e.read, d.values, nil)
	d.fail(e, c.Err)
	return e
}

// fail ends the translation of the chunk with an error of the current event, unless err is nil.
func (d *decoder) fail(e *event, err error) {
	if err != nil && d.Err == nil {
		d.Err = d.At(e.name, err)
	}
}

// resolve finds the stack and the attributes of each row, and adds it to its family.
func (d *decoder) resolve() {
	for i := range d.rows {
		r := &d.rows[i]
		e := d.readEvent(r.at)
		if d.Err != nil {
			return
		}
		stack := d.number(poolStack, d.values[slotStack], (*decoder).newStack)
		set, link := d.attributesOf(e)
		if r.family = e.family; r.family == familyAsync {
			r.family = d.settings.asyncFamily(d.symbol(poolState, d.values[slotState]))
		}
		if e.reason != 0 {
			r.thread = d.number(poolThread, d.values[slotThread], (*decoder).newThread)
		}
		f := &d.families[r.family]
		r.number = f.samples.Number(stack, set, link)
		if int(r.number) == len(f.values) {
			f.values = jfr.Append(&d.Memory, f.values, [2]int64{})
			d.sampleBytes += 2 * (sampleSize + rowSize)
		}
		if d.check(0); d.Err == nil {
			d.fail(e, add(&f.values[r.number], r.values[0], r.values[1]))
		}
	}
	d.countOnce()
	if d.options.Timestamps {
		d.moveInside()
	} else {
		d.sumIntervals()
	}
	d.sampleBytes += eventSize * len(d.timedValues)
	d.check(0)
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
