// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"
)

// eventType says how the samples of an event are counted.
type eventType struct {
	family family
	// count is the field with the number of samples or objects, which is 1 without it. amount is the
	// field with the size, time or period of one of them.
	count, amount string
	// reason is why the thread of the event was off the CPU for the time amount, or 0 if the event is none of that kind.
	reason reason
	// replaces is the quantity that samples of Datadog's library measure. The JDK's samples of the same are left
	// out of a recording that has both, as they would count twice.
	replaces, replacedBy replacement
}

type replacement uint8

// reason is what a blocked thread waits for.
type reason uint8

const (
	reasonLock reason = iota + 1
	reasonWait
	reasonSleep
	reasonNetwork
	reasonFile
	reasons
)

var reasonNames = [reasons]string{
	reasonLock: timing.Lock, reasonWait: timing.Wait, reasonSleep: timing.Sleep, reasonNetwork: timing.Network, reasonFile: timing.File,
}

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
	"jdk.JavaMonitorEnter":            {family: familyMutex, amount: "duration", reason: reasonLock},
	"jdk.JavaMonitorWait":             {family: familyBlock, amount: "duration", reason: reasonWait},
	"jdk.ThreadPark":                  {family: familyBlock, amount: "duration", reason: reasonWait},
	"jdk.ThreadSleep":                 {family: familyOffCPU, amount: "duration", reason: reasonSleep},
	"jdk.SocketRead":                  {family: familyOffCPU, amount: "duration", reason: reasonNetwork},
	"jdk.SocketWrite":                 {family: familyOffCPU, amount: "duration", reason: reasonNetwork},
	"jdk.FileRead":                    {family: familyOffCPU, amount: "duration", reason: reasonFile},
	"jdk.FileWrite":                   {family: familyOffCPU, amount: "duration", reason: reasonFile},
	"jdk.FileForce":                   {family: familyOffCPU, amount: "duration", reason: reasonFile},
	"profiler.Malloc":                 {family: familyNative, amount: "size"},
	"jdk.ActiveSetting":               {family: familySettings},
	"datadog.DatadogProfilerConfig":   {family: familySettings},
}

// Slots of fields of events.
const (
	slotStart jfr.Slot = jfr.FirstSlot + iota
	slotCount
	slotAmount
	slotThread // those above are read of each event, the others once for each row
	slotStack
	slotCPUInterval // of settings
	slotWallInterval
	slotSetting // positions of strings
	slotSettingValue
	slotContextOf // those from here on are the context of a sample; this one is of no field: see event.context
	slotState
	slotSpan
	slotRootSpan
	slotTraceHi
	slotTraceLo
	slotContext
	slotSpanName
	slotAttributes // those of attributes of Datadog
)

// Slots of fields of constants.
const (
	slotText jfr.Slot = jfr.FirstSlot + iota // positions of strings
	slotOSName
	slotJavaName
	slotFrames // the position of an array
	slotName
	slotDescriptor
	slotMethod // of a frame
	slotLine
	slotType // or the class of a method
	slotOSID
	slotJavaID
	constantSlots
)

// noConstant is the id of a constant that an event does not have. Id 0 may be one.
const noConstant = math.MaxUint64

var eventSlots = map[string]jfr.Slot{
	"startTime": slotStart, "sampledThread": slotThread, "eventThread": slotThread, "stackTrace": slotStack, "state": slotState,
	"spanId": slotSpan, "localRootSpanId": slotRootSpan, "traceIdHi": slotTraceHi, "traceIdLo": slotTraceLo,
	"contextId": slotContext, "spanName": slotSpanName, "cpuInterval": slotCPUInterval, "wallInterval": slotWallInterval,
}

var constantSlotsByName = map[string]jfr.Slot{
	"name": slotName, "descriptor": slotDescriptor, "method": slotMethod, "lineNumber": slotLine, "type": slotType,
	"osThreadId": slotOSID, "javaThreadId": slotJavaID,
}

var textSlots = map[string]jfr.Slot{"name": slotText, "osName": slotOSName, "javaName": slotJavaName}

// constantSlot returns the slot of a field of a constant, or 0.
func constantSlot(f *jfr.Field) (slot jfr.Slot) {
	switch {
	case f.Array && f.Kind == jfr.KindClass && string(f.Name) == "frames":
		slot = slotFrames
	case f.Array:
	case f.Kind == jfr.KindText:
		slot, _ = jfr.LookUp(textSlots, f.Name)
	case f.Kind == jfr.KindVarint || f.Kind == jfr.KindByte:
		slot, _ = jfr.LookUp(constantSlotsByName, f.Name)
	}
	return slot
}

// event is how the samples of a class are read.
type event struct {
	eventType
	number     uint64 // from 1
	name       string
	scan, read []jfr.Step // of each event, and of the first one of each row
	keyLast    bool       // all fields after those of scan are part of the key
	defaults   []uint64   // the values of an event without fields
	isFloat    bool       // the count is a float64
	datadog    bool
	unit       jfr.Unit // of the amount
	attributes []attribute
}

// attribute is a field of Datadog's context. pool is that of its constants, or 0.
type attribute struct {
	name []byte
	pool int32
}

// Values of slotContextOf: contexts of events that name spans alike and have no attributes are equal.
const (
	contextJDK = iota
	contextDatadog
	contextOffCPU                                            // and above, by reason
	contextsWithAttributes = contextOffCPU + uint64(reasons) // and above, by class
)

// maxEvents is how many types of events may be read.
const maxEvents = 127

// bindEvents finds the events that are read.
func (d *decoder) bindEvents() error {
	m := &d.Meta
	d.datadog = m.Find("datadog.ExecutionSample") >= 0 || m.Find("datadog.MethodSample") >= 0
	d.async = !d.datadog && slices.ContainsFunc(m.Classes, func(c jfr.Class) bool { return bytes.HasPrefix(c.Name, []byte("profiler.")) })
	d.events = d.events[:0]
	number := uint64(0)
	for class := range m.Classes {
		e, err := d.bindEvent(int32(class))
		if err != nil {
			return err
		}
		if e != nil {
			if number++; number > maxEvents {
				return &LimitError{What: "types of samples", Limit: maxEvents}
			}
			e.number = number
		}
		d.events = jfr.Append(&d.Memory, d.events, e)
	}
	return d.Err
}

// bindEvent returns how the events of a class are read, or nil.
func (d *decoder) bindEvent(class int32) (*event, error) {
	of, reads := jfr.LookUp(eventTypes, d.Meta.Classes[class].Name)
	name := string(d.Meta.Classes[class].Name[:min(len(d.Meta.Classes[class].Name), 64)])
	if !reads || !d.async && name == "jdk.ActiveSetting" { // the settings of the JDK have other names
		return nil, nil
	}
	if d.async && name == "jdk.ExecutionSample" {
		of.family = familyAsync
	}
	e := &event{eventType: of, name: name, datadog: strings.HasPrefix(name, "datadog.")}
	steps := d.Compile(class, func(f *jfr.Field) jfr.Slot { return d.eventSlot(e, f) })
	e.read = jfr.Trim(steps)
	e.scan, e.keyLast = jfr.Keyed(steps, slotThread)
	if d.Err != nil {
		return nil, fmt.Errorf("type %s: %w", name, d.Err)
	}
	e.defaults = make([]uint64, int(slotAttributes)+len(e.attributes)) // less than the metadata of the fields take
	e.defaults[slotCount] = 1
	for _, s := range []jfr.Slot{slotThread, slotStack, slotState} {
		e.defaults[s] = noConstant
	}
	switch {
	case len(e.attributes) > 0:
		e.defaults[slotContextOf] = contextsWithAttributes + uint64(class)
	case e.datadog:
		e.defaults[slotContextOf] = contextDatadog
	case e.reason != 0:
		e.defaults[slotContextOf] = contextOffCPU + uint64(e.reason)
	}
	return e, nil
}

// eventSlot returns the slot of a field of an event, or 0.
func (d *decoder) eventSlot(e *event, f *jfr.Field) jfr.Slot {
	name := string(f.Name[:min(len(f.Name), 64)])
	isNumber, isFloat := f.Kind == jfr.KindVarint, f.Kind == jfr.KindFloat || f.Kind == jfr.KindDouble
	slot := eventSlots[name]
	switch {
	case f.Array:
		return 0
	case name == e.count && (isNumber || isFloat):
		e.isFloat = isFloat
		return slotCount
	case name == e.amount && isNumber:
		e.unit = f.Unit
		return slotAmount
	case slot != 0 && (isNumber || f.Kind == jfr.KindByte):
		if slot == slotCPUInterval || slot == slotWallInterval {
			e.unit = f.Unit
		}
		return slot
	case e.family == familySettings && f.Kind == jfr.KindText && name == "name":
		return slotSetting
	case e.family == familySettings && f.Kind == jfr.KindText && name == "value":
		return slotSettingValue
	case e.datadog && e.family != familySettings && name != "mode":
		if pool, isText := d.textPool(f); isText {
			e.attributes = append(e.attributes, attribute{f.Name, pool})
			return slotAttributes + jfr.Slot(len(e.attributes)-1)
		}
	}
	return 0
}

// textPool reports whether the value of a field is a string, or a constant that consists of one. Then
// it returns the pool of the constant, or 0.
func (d *decoder) textPool(f *jfr.Field) (pool int32, isText bool) {
	if !f.Constant {
		return 0, f.Kind == jfr.KindText
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
