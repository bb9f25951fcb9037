// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"bytes"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// decoder translates one recording at a time and keeps its memory for the next.
//
// A constant has the id that the chunk gives it; a position in its pool; and, if a sample
// reaches it, an index in the OTLP dictionary.
type decoder struct {
	options Unmarshaler
	limits  Limits
	source  *source
	next    int64 // where the next chunk starts
	memory  memory
	report  Report

	// Of the recording.
	settings    settings
	labels      labels
	replaced    replacement
	tables      *dictionary.Tables
	sampleBytes int // of the result

	// Of the chunk.
	chunk      int // its number, from 1
	header     header
	data       []byte
	stop       int // where the last complete event ends
	meta       metadata
	pools      []pool
	bound      []event
	async      bool // it is async-profiler's
	datadog    bool // it is that of Datadog's library
	settingsAt []uint32
	isDefault  []bool           // by position in poolState
	extra      []eventAttribute // of the current event
	byType     []*event         // by type, if that is small; nil if it is not read
	methods    []method
	frames     []frame
	sets       map[setKey]setValue
	plainSets  []int32 // by the positions of thread and state: the number of a set plus one
	families   [families]accumulator
	last       uint64 // the latest time of a sample
	limit      int    // of the result, in bytes

	kindAttributes [frameKinds]int32

	buffer, scratch, name []byte
	nameStart, nameStop   int // of the name of a method in name
	locations, attributes []int32
	keys                  []int32 // of attributes
	lines                 []dictionary.Line
	value                 dictionary.Value
}

// start prepares d for a recording.
func (d *decoder) start(u *Unmarshaler, from *source, reserve func(bytes int64) error) {
	d.options, d.limits, d.source = *u, u.Limits.withDefaults(), from
	d.next, d.chunk, d.report, d.settings, d.replaced = 0, 0, Report{}, settings{}, 0
	d.memory = memory{reserve: reserve, kept: d.memory.kept + d.memory.used}
}

// prepare reads what must be known before the first chunk is translated: the labels, and
// which of the JDK's samples Datadog's replace.
func (d *decoder) prepare() error {
	if err := d.readLabels(d.options.Labels); err != nil {
		return err
	}
	for d.next < d.source.size {
		// translateChunk reports an error, after which there is no next chunk, or another one.
		if err := d.loadChunk(); err == nil && d.mentionsDatadog() {
			d.findReplaced()
		}
	}
	d.next, d.chunk, d.report = 0, 0, Report{}
	return nil
}

// mentionsDatadog reports whether the metadata of the chunk may have events of Datadog's.
func (d *decoder) mentionsDatadog() bool {
	if d.header.unfinished {
		return bytes.Contains(d.data, []byte("datadog."))
	}
	at := min(max(d.header.metadata, 0), int64(len(d.data)))
	var c cursor
	_, next, err := d.eventAt(&c, int(at))
	return err == nil && bytes.Contains(d.data[c.at:next], []byte("datadog."))
}

// findReplaced notes of which kinds Datadog's samples in the chunk are. translateChunk
// reports errors.
func (d *decoder) findReplaced() {
	d.stop = len(d.data)
	if d.findMetadata() != nil || d.header.metadata == 0 || d.bind() != nil {
		return
	}
	_ = d.events(func(typeID uint64, _ *cursor, _ int) error {
		if i := d.meta.byID.find(typeID); i >= 0 && d.meta.classes[i].event != nil {
			d.replaced |= replaces[d.meta.classes[i].event.kind]
		}
		return nil
	})
}

func (d *decoder) newProfiles() (pprofile.Profiles, pprofile.ScopeProfilesSlice) {
	pd := pprofile.NewProfiles()
	d.tables.WriteTo(pd.Dictionary())
	d.kindAttributes = [frameKinds]int32{}
	d.sampleBytes, d.limit = 0, 1<<20
	d.memory.result = 0
	return pd, pd.ResourceProfiles().AppendEmpty().ScopeProfiles()
}

// translateChunk translates the next chunk.
func (d *decoder) translateChunk(to pprofile.ScopeProfilesSlice) error {
	if err := d.loadChunk(); err != nil {
		return err
	}
	d.limit += d.limits.Expansion * len(d.data)
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
	d.report.Bytes = d.memory.result
	return d.tables.Err()
}

func (d *decoder) release() {
	d.tables.Release()
	d.options, d.source, d.data, d.labels = Unmarshaler{}, nil, nil, labels{}
	for i := range d.meta.strings {
		d.meta.strings[i] = nil
	}
	d.meta.classes, d.meta.annotations, d.meta.fields = cleared(d.meta.classes), cleared(d.meta.annotations), cleared(d.meta.fields)
	d.memory.reserve = nil
	if d.memory.kept+d.memory.used+d.tables.Retained() <= maxPooled {
		decoders.Put(d)
	}
}

// cleared returns s without elements, and no reference left in its memory.
func cleared[E any](s []E) []E {
	clear(s[:cap(s)])
	return s[:0]
}

// checkSize rejects a recording that takes too much memory as OTLP, and reserves this
// memory from time to time.
func (d *decoder) checkSize() error {
	size := d.sampleBytes + d.tables.OutputSize()
	if size > d.limit {
		return &LimitError{What: fmt.Sprintf("bytes as OTLP of chunk %d", d.chunk), Limit: int64(d.limit)}
	}
	if size-d.memory.result < minStep {
		return nil
	}
	return d.updateResult()
}

func (d *decoder) updateResult() error {
	size := d.sampleBytes + d.tables.OutputSize()
	d.memory.tables = d.tables.Retained()
	d.memory.result = size + size/8 + d.tables.StringsOutputSize() + 2*profileSize*int(families)
	return d.memory.update()
}

// bind finds the types that samples need in the metadata of the chunk.
func (d *decoder) bind() error {
	m := &d.meta
	d.pools = d.pools[:0]
	for _, name := range poolTypes {
		d.addPool(m.find(name))
	}
	d.bindConstants(poolStack, map[string]slot{"frames": slotFrames})
	d.bindConstants(poolMethod, map[string]slot{"type": slotType, "name": slotName, "descriptor": slotDescriptor})
	d.bindConstants(poolClass, map[string]slot{"name": slotName})
	d.bindConstants(poolThread, map[string]slot{"osName": slotOSName, "osThreadId": slotOSID, "javaName": slotJavaName, "javaThreadId": slotJavaID})
	if c := m.find("jdk.types.StackFrame"); c != nil {
		d.bindFields(c, map[string]slot{"method": slotMethod, "lineNumber": slotLine, "type": slotFrameType})
	}
	return d.bindEvents()
}

// bindConstants sets the slots of the fields of a constant.
func (d *decoder) bindConstants(number int, slots map[string]slot) {
	if c := d.pools[number].class; c != nil {
		d.bindFields(c, slots)
	}
}

// bindFields sets the slots of those fields of a class that have the expected kind.
func (d *decoder) bindFields(c *class, slots map[string]slot) {
	fields := d.meta.fieldsOf(c)
	for i := range fields {
		f := &fields[i]
		want, array := kindVarint, false
		switch string(f.name) {
		case "frames":
			want, array = kindClass, true
		case "osName", "javaName":
			want = kindText
		}
		if f.kind == want && f.array == array {
			f.slot = slots[string(f.name)]
		}
	}
}

// bindEvents finds the events that are read.
func (d *decoder) bindEvents() (err error) {
	m := &d.meta
	d.datadog = m.find("datadog.ExecutionSample") != nil || m.find("datadog.MethodSample") != nil
	d.async, d.bound = false, d.bound[:0]
	const small = 4096 // the most types that d.byType is for
	d.byType = cleared(d.byType)
	for i := range m.classes {
		d.async = d.async || !d.datadog && bytes.HasPrefix(m.classes[i].name, []byte("profiler."))
	}
	for i := range m.classes {
		c := &m.classes[i]
		kind := eventKinds[string(c.name)]
		if kind == noKind {
			continue
		}
		if d.async && string(c.name) == "jdk.ExecutionSample" {
			kind = asyncExecution
		}
		if d.bound, err = room(&d.memory, d.bound, 1); err != nil {
			return err
		}
		d.bound = append(d.bound, event{kind: kind, class: c, datadog: bytes.HasPrefix(c.name, []byte("datadog.")), replaced: replacedBy[kind]})
		c.event = &d.bound[len(d.bound)-1]
		d.bindEvent(c.event)
	}
	for i, id := range m.ids {
		if id < small {
			d.byType = append(d.byType, make([]*event, max(0, int(id)+1-len(d.byType)))...)
			d.byType[id] = m.classes[i].event
		}
	}
	return nil
}

// readStates notes which states of threads are STATE_DEFAULT.
func (d *decoder) readStates() (err error) {
	p := &d.pools[poolState]
	if d.isDefault, err = room(&d.memory, d.isDefault[:0], len(p.ids)); err != nil {
		return err
	}
	for _, id := range p.ids {
		text, err := d.symbol(poolState, id)
		if err != nil {
			return err
		}
		d.isDefault = append(d.isDefault, string(text) == "STATE_DEFAULT")
	}
	return nil
}
