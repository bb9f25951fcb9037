// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"
)

// eventType says how the samples of an event are counted.
type eventType struct {
	family family
	// count is the field with the number of samples or objects, which is 1 without it. amount is the
	// field with the size, time or period of one of them.
	count, amount string
	// replaces is the quantity that samples of Datadog's library measure. The JDK's samples of the same are left
	// out of a recording that has both, as they would count twice.
	replaces, replacedBy replacement
}

type replacement uint8

const (
	replacedCPU replacement = 1 << iota
	replacedAllocations
)

// eventTypes are the events that are read.
var eventTypes = map[string]eventType{
	"jdk.ExecutionSample":             {family: familySamples, replacedBy: replacedCPU}, // of async-profiler: familyAsync
	"jdk.NativeMethodSample":          {family: familySamples, replacedBy: replacedCPU},
	"jdk.CPUTimeSample":               {family: familyCPUTime, amount: "samplingPeriod", replacedBy: replacedCPU},
	"datadog.ExecutionSample":         {family: familyCPU, count: "weight", replaces: replacedCPU},
	"datadog.MethodSample":            {family: familyWall, count: "weight"},
	"profiler.WallClockSample":        {family: familyWall, count: "samples"},
	"jdk.ObjectAllocationInNewTLAB":   {family: familyInNewTLAB, amount: "tlabSize", replacedBy: replacedAllocations},
	"jdk.ObjectAllocationOutsideTLAB": {family: familyOutsideTLAB, amount: "allocationSize", replacedBy: replacedAllocations},
	"jdk.ObjectAllocationSample":      {family: familyAllocation, amount: "weight", replacedBy: replacedAllocations},
	"datadog.ObjectSample":            {family: familyAllocation, count: "weight", amount: "size", replaces: replacedAllocations},
	"profiler.LiveObject":             {family: familyLive, count: "weight", amount: "allocationSize"},
	"datadog.HeapLiveObject":          {family: familyLive, count: "weight", amount: "size"},
	"jdk.JavaMonitorEnter":            {family: familyMutex, amount: "duration"},
	"jdk.JavaMonitorWait":             {family: familyBlock, amount: "duration"},
	"jdk.ThreadPark":                  {family: familyBlock, amount: "duration"},
	"profiler.Malloc":                 {family: familyNative, amount: "size"},
	"jdk.ActiveSetting":               {family: familySettings},
	"datadog.DatadogProfilerConfig":   {family: familySettings},
}

// Slots of fields.
const (
	slotStart jfr.Slot = jfr.FirstSlot + iota
	slotCount
	slotAmount
	scanSlots // those above are read of each event, the others once for each row

	slotThread = scanSlots + iota
	slotStack
	slotState
	slotSpan
	slotRootSpan
	slotTraceHi
	slotTraceLo
	slotContext
	slotSpanName
	slotCPUInterval
	slotWallInterval
	slotName
	slotDescriptor
	slotMethod // of a frame
	slotLine
	slotType // or the class of a method
	slotOSID
	slotJavaID
	slotText // positions of strings
	slotValue
	slotOSName
	slotJavaName
	slotFrames // the position of an array
	slots      // those of attributes of Datadog follow
)

// noConstant is the id of a constant that an event does not have. Id 0 may be one.
const noConstant = math.MaxUint64

var numberSlots = map[string]jfr.Slot{
	"startTime": slotStart, "sampledThread": slotThread, "eventThread": slotThread, "stackTrace": slotStack, "state": slotState,
	"spanId": slotSpan, "localRootSpanId": slotRootSpan, "traceIdHi": slotTraceHi, "traceIdLo": slotTraceLo,
	"contextId": slotContext, "spanName": slotSpanName, "cpuInterval": slotCPUInterval, "wallInterval": slotWallInterval,
	"name": slotName, "descriptor": slotDescriptor, "method": slotMethod, "lineNumber": slotLine, "type": slotType,
	"osThreadId": slotOSID, "javaThreadId": slotJavaID,
}

var textSlots = map[string]jfr.Slot{"name": slotText, "value": slotValue, "osName": slotOSName, "javaName": slotJavaName}

// slotOf returns the slot of a field of a constant, or of an event beyond its values.
func slotOf(f *jfr.Field) jfr.Slot {
	switch {
	case f.Array && f.Kind == jfr.KindClass && string(f.Name) == "frames":
		return slotFrames
	case f.Array:
		return jfr.SlotNone
	case f.Kind == jfr.KindText:
		return textSlots[string(f.Name)]
	case f.Kind == jfr.KindVarint || f.Kind == jfr.KindByte:
		return numberSlots[string(f.Name)]
	}
	return jfr.SlotNone
}

// event is how the samples of a class are read.
type event struct {
	eventType
	number     uint8
	class      int32
	scan, read []jfr.Step // of each event, and of the first one of each row
	counted    bool       // has the field count
	isFloat    bool       // which is a float64
	keyLast    bool       // all fields after those of scan are part of the key
	datadog    bool
	unit       jfr.Unit // of the amount
	attributes []attribute
}

// attribute is a field of Datadog's context. pool is that of its constants, or 0.
type attribute struct {
	name string
	pool int32
}

// bindEvents finds the events that are read.
func (d *decoder) bindEvents() error {
	m := &d.Meta
	d.datadog = m.Find("datadog.ExecutionSample") >= 0 || m.Find("datadog.MethodSample") >= 0
	d.async = !d.datadog && slices.ContainsFunc(m.Classes, func(c jfr.Class) bool { return bytes.HasPrefix(c.Name, []byte("profiler.")) })
	d.events = d.events[:0]
	number, attributes := 0, 0
	for class := range m.Classes {
		name := string(m.Classes[class].Name)
		of, reads := eventTypes[name]
		if !reads || !d.async && name == "jdk.ActiveSetting" { // the settings of the JDK have other names
			d.events = jfr.Append(&d.Memory, d.events, nil)
			continue
		}
		if d.async && name == "jdk.ExecutionSample" {
			of.family = familyAsync
		}
		if number == math.MaxUint8 {
			return &LimitError{What: "types of samples", Limit: math.MaxUint8}
		}
		e := &event{eventType: of, number: uint8(number), class: int32(class), datadog: strings.HasPrefix(name, "datadog.")}
		if d.bindEvent(e); d.Err != nil {
			return fmt.Errorf("type %s: %w", name, d.Err)
		}
		d.events = jfr.Append(&d.Memory, d.events, e)
		number++
		attributes = max(attributes, len(e.attributes))
	}
	d.values = jfr.Grow(&d.Memory, d.values[:0], int(slots)+attributes)
	if d.Err == nil {
		d.values = d.values[:int(slots)+attributes]
	}
	return d.Err
}

func (d *decoder) bindEvent(e *event) {
	e.read = d.Compile(e.class, func(f *jfr.Field) jfr.Slot { return d.eventSlot(e, f) })
	last := len(e.read)
	e.read = jfr.Trim(e.read)
	for _, s := range e.read {
		if s.Slot >= scanSlots {
			s.Slot = jfr.SlotKey
		}
		e.scan = jfr.AppendStep(e.scan, s)
	}
	if n := len(e.scan); n > 0 && len(e.read) == last && e.scan[n-1].Slot == jfr.SlotKey {
		e.scan, e.keyLast = e.scan[:n-1], true
	}
}

// eventSlot returns the slot of a field of an event.
func (d *decoder) eventSlot(e *event, f *jfr.Field) jfr.Slot {
	name := string(f.Name)
	float := f.Kind == jfr.KindFloat || f.Kind == jfr.KindDouble
	switch {
	case name == e.count && !f.Array && (f.Kind == jfr.KindVarint || float):
		e.counted, e.isFloat = true, float
		return slotCount
	case name == e.amount && !f.Array && f.Kind == jfr.KindVarint:
		e.unit = f.Unit
		return slotAmount
	}
	s := slotOf(f)
	switch {
	case s == slotCPUInterval || s == slotWallInterval:
		e.unit = f.Unit
	case s == jfr.SlotNone && e.datadog && e.family != familySettings && name != "mode":
		if pool, isText := d.textPool(f); isText {
			e.attributes = append(e.attributes, attribute{name, pool})
			return slots + jfr.Slot(len(e.attributes)-1)
		}
	}
	return s
}

// textPool reports whether the value of a field is a string, or a constant that consists of one. Then
// it returns the pool of the constant, or 0.
func (d *decoder) textPool(f *jfr.Field) (pool int32, isText bool) {
	switch {
	case f.Array || f.Kind == jfr.KindText:
		return 0, !f.Array
	case !f.Constant || f.Class < 0:
		return 0, false
	}
	of := &d.Meta.Classes[f.Class]
	fields := d.Meta.FieldsOf(f.Class)
	if string(of.Name) == "java.lang.String" {
		return poolString, true
	}
	if len(fields) != 1 || fields[0].Kind != jfr.KindText || fields[0].Array {
		return 0, false
	}
	if of.Pool == 0 {
		d.addPool(f.Class)
	}
	return of.Pool, true
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
	var v [scanSlots]uint64
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
	if e.counted || v[slotAmount] != 0 {
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

var errWeight = errors.New("the weight is not a number, or its product with the size is more than int64 holds")

// measure returns the values of a sample. Of a family whose second value is the first one times a
// period, the second is 0.
func (d *decoder) measure(e *event, v *[scanSlots]uint64) (first, second int64, err error) {
	amount := d.Header.In(e.unit, d.positive(int64(v[slotAmount])))
	switch {
	case !e.counted:
		return 1, amount, nil
	case !e.isFloat:
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
