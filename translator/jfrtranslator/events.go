// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"errors"
	"fmt"
	"math"

	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"
)

// eventKind is a type of event that is a sample, or that a sample needs.
type eventKind uint8

const (
	noKind                eventKind = iota
	asyncExecution                  // jdk.ExecutionSample of async-profiler
	jdkExecution                    // of the JDK's sampler, which takes a few threads a tick: not CPU time
	jdkCPUTime                      // of JDK 25
	datadogExecution                // on a CPU
	datadogMethod                   // of any thread, by the clock
	asyncWall                       // the same of async-profiler
	allocationInNewTLAB             // the size is that of the TLAB
	allocationOutsideTLAB           //
	allocationSample                // of JDK 16, its weight is in bytes
	datadogAllocation               // its weight is a number of objects
	asyncLive                       // an object that is still referenced
	datadogLive                     // its weight is a number of objects
	monitorEnter                    // waiting to enter a monitor
	monitorWait                     // Object.wait
	threadPark                      // java.util.concurrent
	nativeAllocation                // malloc
	activeSetting                   // settings of the recording
	datadogConfig                   // settings of Datadog's library
)

// eventKinds are the events by name. In recordings of async-profiler, jdk.ExecutionSample
// is asyncExecution.
var eventKinds = map[string]eventKind{
	"jdk.ExecutionSample":             jdkExecution,
	"jdk.NativeMethodSample":          jdkExecution,
	"jdk.CPUTimeSample":               jdkCPUTime,
	"datadog.ExecutionSample":         datadogExecution,
	"datadog.MethodSample":            datadogMethod,
	"profiler.WallClockSample":        asyncWall,
	"jdk.ObjectAllocationInNewTLAB":   allocationInNewTLAB,
	"jdk.ObjectAllocationOutsideTLAB": allocationOutsideTLAB,
	"jdk.ObjectAllocationSample":      allocationSample,
	"datadog.ObjectSample":            datadogAllocation,
	"profiler.LiveObject":             asyncLive,
	"datadog.HeapLiveObject":          datadogLive,
	"jdk.JavaMonitorEnter":            monitorEnter,
	"jdk.JavaMonitorWait":             monitorWait,
	"jdk.ThreadPark":                  threadPark,
	"profiler.Malloc":                 nativeAllocation,
	"jdk.ActiveSetting":               activeSetting,
	"datadog.DatadogProfilerConfig":   datadogConfig,
}

// replacement is what samples of Datadog's library measure. The JDK's samples of the same
// are left out of a recording that has both, as they would count twice.
type replacement uint8

const (
	replacedCPU replacement = 1 << iota
	replacedAllocations
)

// replaces and replacedBy are of Datadog's events and of the JDK's.
var (
	replaces   = map[eventKind]replacement{datadogExecution: replacedCPU, datadogAllocation: replacedAllocations}
	replacedBy = map[eventKind]replacement{
		jdkExecution: replacedCPU, jdkCPUTime: replacedCPU,
		allocationInNewTLAB: replacedAllocations, allocationOutsideTLAB: replacedAllocations, allocationSample: replacedAllocations,
	}
)

// Slots of the fields that samples need.
const (
	slotNone jfr.Slot = iota
	// Fields of events.
	slotStart
	slotDuration
	slotThread
	slotStack
	slotState
	slotWeight // as the bits of a float64 if isFloat
	slotSize
	slotSamples
	slotPeriod
	slotSpan
	slotRootSpan
	slotTraceHi
	slotTraceLo
	slotContext
	slotSpanName
	slots
	slotAttribute // a string
)

// Slots of the fields of constants, and of settings.
const (
	slotFrames     = slotStart
	slotMethod     = slotStart // of a frame
	slotLine       = slotDuration
	slotFrameType  = slotThread
	slotType       = slotStart // of a method or class
	slotName       = slotDuration
	slotDescriptor = slotThread
	slotOSName     = slotStart // of a thread
	slotOSID       = slotDuration
	slotJavaName   = slotThread
	slotJavaID     = slotStack
)

var eventSlots = map[string]jfr.Slot{
	"startTime": slotStart, "duration": slotDuration, "sampledThread": slotThread, "eventThread": slotThread,
	"stackTrace": slotStack, "state": slotState, "weight": slotWeight, "samples": slotSamples, "samplingPeriod": slotPeriod,
	"spanId": slotSpan, "localRootSpanId": slotRootSpan, "traceIdHi": slotTraceHi, "traceIdLo": slotTraceLo,
	"contextId": slotContext, "spanName": slotSpanName,
}

// sizeFields are the fields that hold the size of an allocation.
var sizeFields = map[eventKind]string{
	allocationInNewTLAB: "tlabSize", allocationOutsideTLAB: "allocationSize", asyncLive: "allocationSize",
	datadogAllocation: "size", datadogLive: "size", nativeAllocation: "size",
}

// notAttributes are Datadog's fields with a string that are not attributes of its context.
var notAttributes = map[string]bool{"mode": true}

// event is how the samples of a type of event are read.
type event struct {
	kind     eventKind
	class    *jfr.Class
	datadog  bool
	isFloat  bool // the weight
	has      [slots]bool
	units    [slots]jfr.Unit
	extended bool        // has fields of attributes
	replaced replacement // left out if Datadog's library measures this
	// integers are the slots of the fields that it starts with, as long as these are integers.
	// If no field behind them matters, complete is set.
	integers []jfr.Slot
	complete bool
	// numbers are the fields of the current event. Those that it lacks are 0.
	numbers [slots + 1]uint64
}

// bindEvent prepares the reading of an event, and the pools that it needs.
func (d *decoder) bindEvent(e *event) {
	for i := range d.Meta.FieldsOf(e.class) {
		f := &d.Meta.FieldsOf(e.class)[i]
		s := eventSlots[string(f.Name)]
		if string(f.Name) == sizeFields[e.kind] {
			s = slotSize
		}
		switch {
		case f.Array:
			s = slotNone
		case s == slotNone && e.datadog && !notAttributes[string(f.Name)] && d.isText(f):
			s, e.extended = slotAttribute, true
			if of := &d.Meta.Classes[max(f.Class, 0)]; f.Constant && of.Pool == 0 {
				d.AddPool(of)
			}
		case f.Kind != jfr.KindVarint && f.Kind != jfr.KindByte && (s != slotWeight || f.Kind != jfr.KindFloat && f.Kind != jfr.KindDouble):
			s = slotNone
		}
		if f.Slot = s; s < slots {
			e.has[s], e.units[s] = true, f.Unit
			e.isFloat = e.isFloat || s == slotWeight && f.Kind != jfr.KindVarint
		}
	}
	e.complete = true
	for _, f := range d.Meta.FieldsOf(e.class) {
		if e.complete = e.complete && f.Kind == jfr.KindVarint && !f.Array && f.Slot != slotAttribute; e.complete {
			e.integers = append(e.integers, f.Slot)
		} else if f.Slot != slotNone {
			return
		}
	}
	e.complete = true
	for n := len(e.integers); n > 0 && e.integers[n-1] == slotNone; n-- {
		e.integers = e.integers[:n-1]
	}
}

// isText reports whether the value of a field is a string, or a constant that consists of
// one.
func (d *decoder) isText(f *jfr.Field) bool {
	if f.Kind == jfr.KindText {
		return true
	}
	if !f.Constant || f.Class < 0 {
		return false
	}
	of := &d.Meta.Classes[f.Class]
	fields := d.Meta.FieldsOf(of)
	return of.Kind == jfr.KindText || of.Simple && len(fields) == 1 && fields[0].Kind == jfr.KindText && !fields[0].Array
}

// eventAttribute is a field with a string.
type eventAttribute struct {
	field *jfr.Field
	at    int // where its value is
}

// readEvent reads the fields of an event into e.numbers and d.extra.
func (d *decoder) readEvent(c *jfr.Cursor, e *event) error {
	start, fields := c.At, d.Meta.FieldsOf(e.class)
	for _, s := range e.integers {
		e.numbers[s] = c.Varint()
	}
	if c.Failed != "" {
		c.At = start
		return notRead(*c, fields)
	}
	if e.complete {
		return nil
	}
	d.extra = d.extra[:0]
	for i := len(e.integers); i < len(fields); i++ {
		f := &fields[i]
		switch {
		case f.Slot == slotAttribute && f.Constant:
			d.extra = append(d.extra, eventAttribute{f, int(c.Varint())})
		case f.Slot == slotAttribute:
			d.extra = append(d.extra, eventAttribute{f, c.At})
			d.Meta.SkipField(c, f, 0)
		case f.Slot == slotNone:
			d.Meta.SkipField(c, f, 0)
		case f.Kind == jfr.KindVarint:
			e.numbers[f.Slot] = c.Varint()
		case f.Kind == jfr.KindFloat:
			if b := c.Bytes(4); b != nil {
				e.numbers[f.Slot] = math.Float64bits(float64(math.Float32frombits(uint32(bigEndian(b)))))
			}
		case f.Kind == jfr.KindDouble:
			if b := c.Bytes(8); b != nil {
				e.numbers[f.Slot] = bigEndian(b)
			}
		case f.Kind == jfr.KindByte:
			if b := c.Bytes(1); b != nil {
				e.numbers[f.Slot] = uint64(b[0])
			}
		}
		if c.Failed != "" {
			return fmt.Errorf("field %s: %s", f.Name, c.Failed)
		}
	}
	return nil
}

// notRead says which of fields that are integers is malformed.
func notRead(c jfr.Cursor, fields []jfr.Field) error {
	failed, i := c.Failed, 0
	for c.Failed = ""; c.Failed == "" && i < len(fields); i++ {
		c.Varint()
	}
	return fmt.Errorf("field %s: %s", fields[max(i-1, 0)].Name, failed)
}

func bigEndian(b []byte) (n uint64) {
	for _, next := range b {
		n = n<<8 | uint64(next)
	}
	return n
}

var errWeight = errors.New("the weight is not a number, or its product with the size is more than int64 holds")

// number returns a field that cannot be negative.
func (d *decoder) number(e *event, s jfr.Slot) int64 {
	n := int64(e.numbers[s])
	if n < 0 {
		d.report.NegativeValues++
		return 0
	}
	return n
}

// weigh returns n times the weight of an event, rounded.
func (d *decoder) weigh(e *event, n int64) (int64, error) {
	if !e.isFloat {
		w := int64(1)
		if e.has[slotWeight] {
			w = d.number(e, slotWeight)
		}
		if product := jfr.Scale(n, w, 1); w <= 1 || product != math.MaxInt64 {
			return product, nil
		}
		return 0, errWeight
	}
	w := math.Float64frombits(e.numbers[slotWeight])
	if w < 0 {
		d.report.NegativeValues++
		w = 0
	}
	product := math.Round(w * float64(n))
	if !(product < math.MaxInt64) {
		return 0, errWeight
	}
	return int64(product), nil
}

// eventOf returns how the samples of a type are read, or nil.
func (d *decoder) eventOf(typeID uint64) *event {
	if i := d.Meta.ByID.Find(typeID); i >= 0 {
		return d.bound[i]
	}
	return nil
}

// readSamples reads the samples of the chunk.
func (d *decoder) readSamples() error {
	return d.Events(func(typeID uint64, c *jfr.Cursor, at int) error {
		e := d.eventOf(typeID)
		if e == nil || e.kind >= activeSetting {
			if typeID != jfr.TypeMetadata && typeID != jfr.TypeCheckpoint {
				d.report.OtherEvents++
			}
			return nil
		}
		if d.replaced&e.replaced != 0 {
			d.report.ReplacedSamples++
			return nil
		}
		err := d.readEvent(c, e)
		if err == nil {
			err = d.addSample(e)
		}
		if err != nil {
			return d.At(at, string(e.class.Name), err)
		}
		return nil
	})
}

// addSample adds the sample that e holds.
func (d *decoder) addSample(e *event) error {
	family, first, second, err := d.measure(e)
	if err != nil {
		return err
	}
	stack := int32(0)
	if e.has[slotStack] {
		if stack, err = d.stack(e.numbers[slotStack]); err != nil {
			return err
		}
	}
	set, link, err := d.attributesOf(e)
	if err != nil {
		return err
	}
	start, timed := uint64(0), d.options.Timestamps && family != familyLive
	if timed || d.Header.Unfinished {
		start = d.Header.Time(int64(e.numbers[slotStart])) // each event has one
		d.last = max(d.last, start)
	}
	f := &d.families[family]
	row := f.samples.Number(stack, set, link)
	if err := d.tables.Err(); err != nil {
		return err
	}
	if err := f.add(d, row, start, first, second, timed); err != nil {
		return err
	}
	return d.checkSize()
}

// measure returns the family of the sample that e holds, and its values. Of a family
// whose second value is the first one times a period, the second is 0.
func (d *decoder) measure(e *event) (of family, first, second int64, err error) {
	switch e.kind {
	case asyncExecution:
		return d.asyncFamily(e), 1, 0, nil
	case jdkExecution:
		return familySamples, 1, 0, nil
	case jdkCPUTime:
		return familyCPUTime, 1, d.Header.In(e.units[slotPeriod], d.number(e, slotPeriod)), nil
	case datadogExecution, datadogMethod:
		of = familyCPU
		if e.kind == datadogMethod {
			of = familyWall
		}
		first, err = d.weigh(e, 1)
		return of, first, 0, err
	case asyncWall:
		return familyWall, max(1, d.number(e, slotSamples)), 0, nil
	case allocationInNewTLAB:
		return familyInNewTLAB, 1, d.number(e, slotSize), nil
	case allocationOutsideTLAB:
		return familyOutsideTLAB, 1, d.number(e, slotSize), nil
	case allocationSample:
		return familyAllocation, 1, d.number(e, slotWeight), nil
	case nativeAllocation:
		return familyNative, 1, d.number(e, slotSize), nil
	case datadogAllocation, datadogLive, asyncLive:
		of = familyLive
		if e.kind == datadogAllocation {
			of = familyAllocation
		}
		if first, err = d.weigh(e, 1); err != nil {
			return of, 0, 0, err
		}
		second, err = d.weigh(e, d.number(e, slotSize))
		return of, first, second, err
	default: // monitorEnter, monitorWait, threadPark
		of = familyBlock
		if e.kind == monitorEnter {
			of = familyMutex
		}
		return of, 1, d.Header.In(e.units[slotDuration], d.number(e, slotDuration)), nil
	}
}
