// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"bytes"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"
)

// decoder translates one recording at a time and keeps its memory for the next.
//
// A constant has the id that the chunk gives it; a position in its pool; and, if a sample
// reaches it, an index in the OTLP dictionary.
type decoder struct {
	jfr.Recording
	options Unmarshaler
	limits  Limits
	report  Report

	// Of the recording.
	settings    settings
	labels      labels
	replaced    replacement
	tables      *dictionary.Tables
	sampleBytes int // of the result

	// Of the chunk.
	events     []event  // that are read
	bound      []*event // by position of the class; nil if it is not read
	async      bool     // it is async-profiler's
	datadog    bool     // it is that of Datadog's library
	settingsAt []uint32
	isDefault  []bool           // by position in poolState
	extra      []eventAttribute // of the current event
	methods    []method
	frames     []frame
	sets       map[setKey]setValue
	plainSets  []int32 // by the positions of thread and state: the number of a set plus one
	families   [families]accumulator
	last       uint64 // the latest time of a sample
	limit      int    // of the result, in bytes

	kindAttributes [frameKinds]int32

	name                  []byte
	nameStart, nameStop   int // of the name of a method in name
	locations, attributes []int32
	keys                  []int32 // of attributes
	lines                 []dictionary.Line
	value                 dictionary.Value
}

// start prepares d for a recording.
func (d *decoder) start(u *Unmarshaler, reserve func(bytes int64) error) {
	d.options, d.limits = *u, u.Limits.withDefaults()
	d.ChunkSize, d.StringLength = d.limits.ChunkSize, d.limits.StringLength
	d.report, d.settings, d.replaced = Report{}, settings{}, 0
	d.Memory = jfr.Memory{Reserve: reserve, Kept: d.Memory.Kept + d.Memory.Used}
}

// prepare reads what must be known before the first chunk is translated: the labels, and
// which of the JDK's samples Datadog's replace.
func (d *decoder) prepare() error {
	if err := d.readLabels(d.options.Labels); err != nil {
		return err
	}
	for d.More() {
		// translateChunk reports an error, after which there is no next chunk, or another one.
		if err := d.LoadChunk(); err == nil && d.mentionsDatadog() {
			d.findReplaced()
		}
	}
	d.Rewind()
	return nil
}

// mentionsDatadog reports whether the metadata of the chunk may have events of Datadog's.
func (d *decoder) mentionsDatadog() bool {
	if d.Header.Unfinished {
		return bytes.Contains(d.Data, []byte("datadog."))
	}
	at := min(max(d.Header.Metadata, 0), int64(len(d.Data)))
	var c jfr.Cursor
	_, next, err := d.EventAt(&c, int(at))
	return err == nil && bytes.Contains(d.Data[c.At:next], []byte("datadog."))
}

// findReplaced notes of which kinds Datadog's samples in the chunk are. translateChunk
// reports errors.
func (d *decoder) findReplaced() {
	d.Stop = len(d.Data)
	if d.FindMetadata() != nil || d.Header.Metadata == 0 || d.bind() != nil {
		return
	}
	_ = d.Events(func(typeID uint64, _ *jfr.Cursor, _ int) error {
		if e := d.eventOf(typeID); e != nil {
			d.replaced |= replaces[e.kind]
		}
		return nil
	})
}

func (d *decoder) newProfiles() (pprofile.Profiles, pprofile.ScopeProfilesSlice) {
	pd := pprofile.NewProfiles()
	d.tables.WriteTo(pd.Dictionary())
	d.kindAttributes = [frameKinds]int32{}
	d.sampleBytes, d.limit = 0, 1<<20
	d.Memory.Result = 0
	return pd, pd.ResourceProfiles().AppendEmpty().ScopeProfiles()
}

// translateChunk translates the next chunk.
func (d *decoder) translateChunk(to pprofile.ScopeProfilesSlice) error {
	if err := d.LoadChunk(); err != nil {
		return err
	}
	if d.Header.Unfinished {
		d.report.UnfinishedChunks++
	}
	d.limit += d.limits.Expansion * len(d.Data)
	d.methods, d.frames, d.last = d.methods[:0], d.frames[:0], 0
	for i := range d.families {
		d.families[i].reset()
	}
	if err := d.readChunk(); err != nil {
		return err
	}
	if err := d.writeChunk(to); err != nil {
		return err
	}
	return d.updateResult()
}

// finish completes the dictionary.
func (d *decoder) finish() error {
	if err := d.updateResult(); err != nil {
		return err
	}
	d.tables.WriteStrings()
	d.report.InvalidStrings += d.tables.Repaired()
	d.report.Bytes = d.Memory.Result
	return d.tables.Err()
}

func (d *decoder) release() {
	d.tables.Release()
	d.Recording.Release()
	d.options, d.labels = Unmarshaler{}, labels{}
	d.events, d.bound = jfr.Cleared(d.events), jfr.Cleared(d.bound)
	if d.Memory.Kept+d.Memory.Used+d.tables.Retained() <= maxPooled {
		decoders.Put(d)
	}
}

// checkSize rejects a recording that takes too much memory as OTLP, and reserves this
// memory from time to time.
func (d *decoder) checkSize() error {
	size := d.sampleBytes + d.tables.OutputSize()
	if size > d.limit {
		return &LimitError{What: fmt.Sprintf("bytes as OTLP of chunk %d", d.Chunk), Limit: int64(d.limit)}
	}
	if size-d.Memory.Result < jfr.MinStep {
		return nil
	}
	return d.updateResult()
}

func (d *decoder) updateResult() error {
	size := d.sampleBytes + d.tables.OutputSize()
	d.Memory.Tables = d.tables.Retained()
	d.Memory.Result = size + size/8 + d.tables.StringsOutputSize() + 2*profileSize*int(families)
	return d.Memory.Update()
}

// readChunk translates the chunk d.data.
func (d *decoder) readChunk() error {
	d.Stop = len(d.Data)
	if err := d.FindMetadata(); err != nil {
		return err
	}
	if d.Header.Metadata == 0 {
		return nil // nothing was written but the header, or no event can be read
	}
	if err := d.bind(); err != nil {
		return d.At(int(d.Header.Metadata), "metadata", err)
	}
	d.settingsAt = d.settingsAt[:0]
	if err := d.ReadPools(d.noteSetting); err != nil {
		return err
	}
	for _, step := range []func() error{d.readFrameTypes, d.readStates, d.readSettings, d.resetSets, d.readSamples} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Pools that each chunk has. More follow for the types of attributes.
const (
	poolStack = 1 + iota // the first is that of strings
	poolMethod
	poolClass
	poolSymbol
	poolThread
	poolState
	poolFrameType
	fixedPools
)

// poolTypes are the types of the constants.
var poolTypes = [fixedPools]string{
	poolStack: "jdk.types.StackTrace", poolMethod: "jdk.types.Method", poolClass: "java.lang.Class", poolSymbol: "jdk.types.Symbol",
	poolThread: "java.lang.Thread", poolState: "jdk.types.ThreadState", poolFrameType: "jdk.types.FrameType",
}

// bind finds the types that samples need in the metadata of the chunk.
func (d *decoder) bind() error {
	m := &d.Meta
	d.ResetPools()
	for _, name := range poolTypes[poolStack:] {
		d.AddPool(m.Find(name))
	}
	d.bindConstants(poolStack, map[string]jfr.Slot{"frames": slotFrames})
	d.bindConstants(poolMethod, map[string]jfr.Slot{"type": slotType, "name": slotName, "descriptor": slotDescriptor})
	d.bindConstants(poolClass, map[string]jfr.Slot{"name": slotName})
	d.bindConstants(poolThread, map[string]jfr.Slot{"osName": slotOSName, "osThreadId": slotOSID, "javaName": slotJavaName, "javaThreadId": slotJavaID})
	if c := m.Find("jdk.types.StackFrame"); c != nil {
		d.bindFields(c, map[string]jfr.Slot{"method": slotMethod, "lineNumber": slotLine, "type": slotFrameType})
	}
	return d.bindEvents()
}

// bindConstants sets the slots of the fields of a constant.
func (d *decoder) bindConstants(number int, slots map[string]jfr.Slot) {
	if c := d.Pools[number].Class; c != nil {
		d.bindFields(c, slots)
	}
}

// bindFields sets the slots of those fields of a class that have the expected kind.
func (d *decoder) bindFields(c *jfr.Class, slots map[string]jfr.Slot) {
	fields := d.Meta.FieldsOf(c)
	for i := range fields {
		f := &fields[i]
		want, array := jfr.KindVarint, false
		switch string(f.Name) {
		case "frames":
			want, array = jfr.KindClass, true
		case "osName", "javaName":
			want = jfr.KindText
		}
		if f.Kind == want && f.Array == array {
			f.Slot = slots[string(f.Name)]
		}
	}
}

// bindEvents finds the events that are read.
func (d *decoder) bindEvents() (err error) {
	m := &d.Meta
	d.datadog = m.Find("datadog.ExecutionSample") != nil || m.Find("datadog.MethodSample") != nil
	d.async = false
	for i := range m.Classes {
		d.async = d.async || !d.datadog && bytes.HasPrefix(m.Classes[i].Name, []byte("profiler."))
	}
	if d.bound, err = jfr.Zeroed(&d.Memory, d.bound, len(m.Classes)); err != nil {
		return err
	}
	known := 0
	for i := range m.Classes {
		if eventKinds[string(m.Classes[i].Name)] != noKind {
			known++
		}
	}
	if d.events, err = jfr.Room(&d.Memory, d.events[:0], known); err != nil {
		return err
	}
	for i := range m.Classes {
		c := &m.Classes[i]
		kind := eventKinds[string(c.Name)]
		if kind == noKind {
			continue
		}
		if d.async && string(c.Name) == "jdk.ExecutionSample" {
			kind = asyncExecution
		}
		d.events = append(d.events, event{kind: kind, class: c, datadog: bytes.HasPrefix(c.Name, []byte("datadog.")), replaced: replacedBy[kind]})
		d.bound[i] = &d.events[len(d.events)-1] // which does not move: there is room for all
		d.bindEvent(d.bound[i])
	}
	return nil
}

// readStates notes which states of threads are STATE_DEFAULT.
func (d *decoder) readStates() (err error) {
	p := &d.Pools[poolState]
	if d.isDefault, err = jfr.Room(&d.Memory, d.isDefault[:0], len(p.IDs)); err != nil {
		return err
	}
	for _, id := range p.IDs {
		text, err := d.Symbol(poolState, id)
		if err != nil {
			return err
		}
		d.isDefault = append(d.isDefault, string(text) == "STATE_DEFAULT")
	}
	return nil
}
