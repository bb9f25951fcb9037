// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"bytes"
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
	slot := jfr.SlotNone
	switch {
	case f.Array && f.Kind == jfr.KindClass && string(f.Name) == "frames":
		slot = slotFrames
	case f.Array:
	case f.Kind == jfr.KindText:
		slot, _ = jfr.LookUp(textSlots, f.Name)
	case f.Kind == jfr.KindVarint || f.Kind == jfr.KindByte:
		slot, _ = jfr.LookUp(numberSlots, f.Name)
	}
	return slot
}

// event is how the samples of a class are read.
type event struct {
	eventType
	number     uint8
	class      int32
	scan, read []jfr.Step // of each event, and of the first one of each row
	isFloat    bool       // the count is a float64
	keyLast    bool       // all fields after those of scan are part of the key
	datadog    bool
	unit       jfr.Unit // of the amount
	attributes []attribute
}

// attribute is a field of Datadog's context. pool is that of its constants, or 0.
type attribute struct {
	name []byte
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
		of, reads := jfr.LookUp(eventTypes, m.Classes[class].Name)
		if !reads || !d.async && string(m.Classes[class].Name) == "jdk.ActiveSetting" { // the settings of the JDK have other names
			d.events = jfr.Append(&d.Memory, d.events, nil)
			continue
		}
		name := string(m.Classes[class].Name)
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
	float := f.Kind == jfr.KindFloat || f.Kind == jfr.KindDouble
	switch {
	case string(f.Name) == e.count && !f.Array && (f.Kind == jfr.KindVarint || float):
		e.isFloat = float
		return slotCount
	case string(f.Name) == e.amount && !f.Array && f.Kind == jfr.KindVarint:
		e.unit = f.Unit
		return slotAmount
	}
	s := slotOf(f)
	switch {
	case s == slotCPUInterval || s == slotWallInterval:
		e.unit = f.Unit
	case s == jfr.SlotNone && e.datadog && e.family != familySettings && string(f.Name) != "mode":
		if pool, isText := d.textPool(f); isText {
			e.attributes = append(e.attributes, attribute{f.Name, pool})
			return slots + jfr.Slot(len(e.attributes)-1)
		}
	}
	return s
}

// textPool reports whether the value of a field is a string, or a constant that consists of one. Then
// it returns the pool of the constant, or 0.
func (d *decoder) textPool(f *jfr.Field) (pool int32, isText bool) {
	if f.Array || !f.Constant {
		return 0, !f.Array && f.Kind == jfr.KindText
	}
	if f.Class < 0 || !d.IsText(f.Class) {
		return 0, false
	}
	of := &d.Meta.Classes[f.Class]
	if of.Pool == 0 {
		d.addPool(f.Class)
	}
	return of.Pool, true
}
