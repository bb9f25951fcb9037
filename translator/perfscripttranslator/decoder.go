// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscripttranslator

import (
	"bytes"
	"cmp"
	"errors"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
)

// decoder translates one part of a text.
type decoder struct {
	*progress
	clock  *clock
	meter  meter
	report Report

	tables  *dictionary.Tables
	events  []*event
	numbers map[string]int // of events, by name and whether they have periods
	offCPU  *event
	first   uint64 // earliest and latest time of the part, of perf's clock
	latest  uint64

	inSample bool
	header   header
	head     []byte // the line of the header
	stack    []byte // lines of frames
	text     int64  // bytes since memory was checked

	firstOther     []byte
	firstOtherLine int

	value      dictionary.Value
	attributes []int32
	lines      []dictionary.Line // of the location that is being read
	locations  []int32
	types      [3]int32 // attributes by frameType
}

// event has the samples of an event, or the intervals off the CPU.
type event struct {
	name     string
	period   *valueType // of the second Profile; nil if there is none
	samples  dictionary.Samples
	points   []point
	constant int64 // the period of all samples, or 0
}

// point is a sample of an event.
type point struct {
	row   int32
	count int32
	time  uint64 // of perf's clock
	value int64
}

// valueType is a sample type.
type valueType struct{ name, unit string }

// lastDelay identifies a delay of sched_stat_iowait: one of sched_stat_blocked that follows is the same.
type lastDelay struct{ tid, delay int64 }

func newDecoder(p *progress, c *clock, m meter) *decoder {
	return &decoder{
		progress: p, clock: c, meter: m, tables: dictionary.New(), numbers: map[string]int{}, first: p.start, latest: p.start,
	}
}

// meter bounds memory.
type meter struct {
	allowed int64
	more    func(needed int64) (allowed int64, err error)
}

func (m *meter) check(needed int64) (err error) {
	if needed <= m.allowed {
		return nil
	}
	if m.more == nil {
		return &LimitError{What: "bytes of memory", Limit: m.allowed}
	}
	m.allowed, err = m.more(needed)
	return err
}

const (
	maxLine    = 64 << 10  // bytes of a line; the rest is left out
	maxStack   = 256 << 10 // bytes of the lines of a stack
	maxEvents  = 4096
	checkEvery = 32 << 10 // bytes of text without a check of memory
	perText    = 24       // bytes of memory that a byte of text may take until the next check
)

// readPart reads the samples of about size bytes of text.
func (d *decoder) readPart(from io.ReaderAt, textSize, size int64, sum hash.Hash) error {
	in := lineReader{from: io.NewSectionReader(from, d.at, textSize-d.at), buffer: make([]byte, maxLine)}
	for start := d.at; ; {
		line, length, err := in.next()
		if length == 0 && err != nil {
			if !errors.Is(err, io.EOF) {
				return err
			}
			d.at = textSize
			break
		}
		_, isHeader := parseHeader(line)
		if isHeader || len(line) == 0 {
			if err := d.endSample(); err != nil {
				return err
			}
		}
		if isHeader && d.at-start >= size { // the sample belongs to the next part
			break
		}
		if isHeader {
			d.startSample(line)
		} else if len(line) > 0 {
			d.addLine(line)
		}
		sum.Write(line)
		sum.Write([]byte{'\n'})
		d.at += length
		d.line++
		if d.text += length; d.text >= checkEvery {
			if err := d.checkMemory(); err != nil {
				return err
			}
		}
	}
	if err := d.endSample(); err != nil {
		return err
	}
	d.cutLeaves()
	d.start = d.latest + 1
	return cmp.Or(d.tables.Err(), d.checkMemory())
}

// startSample takes the line of a header, which it copies.
func (d *decoder) startSample(line []byte) {
	d.head = append(d.head[:0], line...)
	d.header, _ = parseHeader(d.head)
	d.inSample, d.stack = true, d.stack[:0]
}

// addLine takes a line of a stack or another one.
func (d *decoder) addLine(line []byte) {
	isStack := line[0] == '\t' || line[0] == ' '
	switch {
	case d.inSample && isStack && len(d.stack)+len(line) < maxStack:
		d.stack = append(append(d.stack, line...), '\n')
	case line[0] == '#':
	default:
		d.report.OtherLines++
		if d.firstOther == nil {
			const quoted = 80
			d.firstOther, d.firstOtherLine = bytes.Clone(line[:min(len(line), quoted)]), d.line+1
		}
	}
}

// checkMemory accounts for what the part takes, and may take until the next check.
func (d *decoder) checkMemory() error {
	d.text = 0
	held := d.tables.Retained() + d.leaves.size() + cap(d.stack) + cap(d.head) + 2*maxLine
	for _, e := range d.all() {
		held += eventBytes + len(e.name) + e.samples.Retained() + pointSize*cap(e.points)
	}
	return d.meter.check(int64(held + d.resultSize() + perText*checkEvery))
}

// all returns the events and, if there are any, the intervals off the CPU.
func (d *decoder) all() []*event {
	if d.offCPU == nil {
		return d.events
	}
	return append(d.events[:len(d.events):len(d.events)], d.offCPU)
}

// endSample adds the sample that ends, if there is one.
func (d *decoder) endSample() error {
	if !d.inSample {
		return nil
	}
	d.inSample = false
	h := &d.header
	if d.samples == 0 {
		d.start = h.time
	}
	if d.first == 0 || h.time < d.first {
		d.first = h.time
	}
	d.samples++
	d.latest = max(d.latest, h.time)
	if isTracepoint(h.event) {
		switch name := string(baseName(h.event)); name {
		case schedSwitch:
			if s, ok := parseSwitch(h.rest); ok {
				return d.switchThreads(&s)
			}
		case statWait, statSleep, statIOWait, statBlocked:
			if s, ok := parseDelay(h.rest); ok {
				return d.delay(name, &s)
			}
		case schedWaking, schedWakeup, schedWakeupNew:
			if tid, ok := parseWakeup(h.rest); ok {
				d.wake(tid)
			}
		}
	} else if len(d.stack) == 0 && len(h.rest) > 0 {
		d.stack = append(append(d.stack, h.rest...), '\n')
	}
	return d.addSample()
}

// addSample adds a sample to its event.
func (d *decoder) addSample() error {
	h := &d.header
	e, err := d.eventOf(h)
	if err != nil {
		return err
	}
	d.attributes = d.attributes[:0]
	d.addThread(thread{h.pid, h.tid, h.comm})
	if h.cpu >= 0 {
		d.addInt(string(semconv.CPULogicalNumberKey), h.cpu)
	}
	row := e.samples.Number(d.stackOf(d.stack), d.tables.AttributeSet(d.attributes), 0)
	switch {
	case len(e.points) == 0:
		e.constant = max(h.period, 0)
	case e.constant != h.period:
		e.constant = 0
	}
	e.points = append(e.points, point{row: row, count: 1, time: h.time, value: max(h.period, 0)})
	return nil
}

// eventOf returns the event of a sample.
func (d *decoder) eventOf(h *header) (*event, error) {
	key := append(d.value[:0], baseName(h.event)...)
	if h.period >= 0 {
		key = append(key, 0)
	}
	d.value = key
	if i, known := d.numbers[string(key)]; known {
		return d.events[i], nil
	}
	if len(d.events) == maxEvents {
		return nil, &LimitError{What: "different events", Limit: maxEvents}
	}
	name := dictionary.ValidUTF8(string(baseName(h.event)))
	e := &event{name: name}
	isClock := name == "cpu-clock" || name == "task-clock"
	if isClock {
		e.name = "cpu"
	}
	switch e.name = cmp.Or(e.name, "samples"); {
	case h.period < 0:
	case isClock:
		e.period = &valueType{"cpu", "nanoseconds"}
	default:
		e.period = &valueType{name, "count"}
	}
	d.numbers[string(key)] = len(d.events)
	d.events = append(d.events, e)
	return e, nil
}

// thread identifies a thread. The pid is -1 if it is unknown.
type thread struct {
	pid, tid int64
	comm     []byte
}

// addThread adds the attributes of a thread.
func (d *decoder) addThread(of thread) {
	if of.pid >= 0 {
		d.addInt(string(semconv.ProcessPIDKey), of.pid)
	}
	if of.tid >= 0 {
		d.addInt(string(semconv.ThreadIDKey), of.tid)
	}
	if len(of.comm) > 0 {
		d.addString(string(semconv.ThreadNameKey), of.comm)
	}
}

func (d *decoder) addInt(key string, n int64) {
	d.value = d.value[:0].AppendInt(n)
	d.attributes = append(d.attributes, d.tables.Attribute(d.tables.String(key), 0, d.value))
}

func (d *decoder) addString(key string, text []byte) {
	d.value = d.value[:0].AppendString(d.tables.Valid(text))
	d.attributes = append(d.attributes, d.tables.Attribute(d.tables.String(key), 0, d.value))
}

// switchThreads adds the interval of the thread that gets a CPU, and starts that of the one that leaves it.
func (d *decoder) switchThreads(s *switched) error {
	h := &d.header
	d.paired = true
	if on := d.leaves.threads[s.nextTID]; on != nil {
		d.addIntervals(s.nextTID, on, h.time)
		d.leaves.remove(s.nextTID)
	}
	const idle = 0
	if s.tid == idle || s.ends {
		return nil
	}
	if d.leaves.threads[s.tid] != nil { // that it got the CPU was lost, and when
		d.report.Unpaired++
	}
	l := leave{since: h.time, comm: string(s.comm), pid: -1, wait: waitOf(s.state)}
	if h.tid == s.tid {
		l.pid, l.stack = h.pid, bytes.Clone(d.stack)
	}
	d.leaves.put(s.tid, l)
	return nil
}

// wake notes that a thread could run.
func (d *decoder) wake(tid int64) {
	if l := d.leaves.threads[tid]; l != nil && l.woken == 0 && l.wait.state == timing.Blocked && d.header.time >= l.since {
		l.woken = d.header.time
	}
}

// cutLeaves adds the parts of the intervals that go on at the end of the part.
func (d *decoder) cutLeaves() {
	edge := d.latest + 1
	for _, tid := range slices.Sorted(maps.Keys(d.leaves.threads)) {
		l := d.leaves.threads[tid]
		d.addIntervals(tid, l, edge)
		if l.woken > 0 {
			l.woken, l.wait = 0, woken(l.wait)
		}
		l.since = edge
	}
}

func woken(w wait) wait { return wait{state: timing.Runnable, reason: timing.Woken, kernel: w.kernel} }

// addIntervals adds the time in which a thread was off the CPU, up to a time: until it was woken, and from then on.
func (d *decoder) addIntervals(tid int64, l *leave, end uint64) {
	if end < l.since {
		d.report.Unpaired++
		return
	}
	until := end
	if l.woken > 0 {
		until = min(max(l.woken, l.since), end)
	}
	stack := d.stackOf(l.stack)
	add := func(w wait, from, to uint64) {
		count := int32(1)
		if l.counted {
			count = 0
		}
		l.counted = true
		p := point{count: count, time: from, value: int64(to - from)}
		d.addWait(stack, w, thread{l.pid, tid, []byte(l.comm)}, timing.MarksStart, p)
	}
	if until > l.since || l.woken == 0 {
		add(l.wait, l.since, until)
	}
	if l.woken > 0 {
		add(woken(l.wait), until, end)
	}
}

// delay adds what a sched_stat counts, unless pairs of sched_switch tell it.
func (d *decoder) delay(name string, s *delayed) error {
	last := d.delayed
	d.delayed = lastDelay{}
	switch {
	case d.paired, name == statBlocked && last == lastDelay{s.tid, s.delay}:
		return nil
	case name == statIOWait:
		d.delayed = lastDelay{s.tid, s.delay}
	}
	stack, pid := int32(0), int64(-1)
	if h := &d.header; h.tid == s.tid { // otherwise the stack is that of the thread that wakes it
		stack, pid = d.stackOf(d.stack), h.pid
	}
	p := point{count: 1, time: d.header.time, value: s.delay}
	d.addWait(stack, waitsOfStats[name], thread{pid, s.tid, s.comm}, timing.MarksEnd, p)
	return nil
}

// addWait adds an interval off the CPU.
func (d *decoder) addWait(stack int32, w wait, of thread, marks string, p point) {
	if d.offCPU == nil {
		d.offCPU = &event{name: "off_cpu", period: &valueType{"off_cpu", "nanoseconds"}}
	}
	d.attributes = d.attributes[:0]
	d.addThread(of)
	d.addString(timing.StateAttribute, []byte(w.state))
	d.addString(timing.TimestampMarksAttribute, []byte(marks))
	if w.reason != "" {
		d.addString(timing.ReasonAttribute, []byte(w.reason))
	}
	if w.kernel != "" {
		d.addString(attrkey.ThreadState, []byte(w.kernel))
	}
	p.row = d.offCPU.samples.Number(stack, d.tables.AttributeSet(d.attributes), 0)
	d.offCPU.points = append(d.offCPU.points, p)
}

// frameType is the type of a frame.
type frameType uint8

const (
	frameUnknown frameType = iota // such as the code of a just-in-time compiler
	frameNative
	frameKernel
)

var frameTypeNames = [...]string{frameNative: "native", frameKernel: "kernel"}

func (f *frame) frameType() frameType {
	const kernelAddress = 1 << 63
	file := string(f.file)
	switch {
	case f.address >= kernelAddress, strings.HasPrefix(file, "[kernel"), strings.HasSuffix(file, ".ko"):
		return frameKernel
	case strings.HasPrefix(file, "/") && !strings.HasPrefix(file, "//") && !strings.HasSuffix(file, ".map"), file == "[vdso]":
		return frameNative
	}
	return frameUnknown
}

// stackOf returns the stack with these lines.
func (d *decoder) stackOf(text []byte) int32 {
	d.locations, d.lines = d.locations[:0], d.lines[:0]
	var last frame // whose line of source code may follow
	var function dictionary.Function
	has := false
	line := int64(0)
	end := func() {
		if has {
			d.endFrame(&last, function, line)
		}
	}
	for row := range bytes.Lines(text) {
		row = bytes.TrimSpace(row)
		f, ok := parseFrame(row)
		if ok {
			end()
			last, has, line, function = f, true, 0, dictionary.Function{}
			if len(f.symbol) > 0 {
				function.Name = d.tables.StringBytes(f.symbol)
			}
			continue
		}
		file, number, isSource := parseLine(row)
		if !isSource || !has {
			d.report.OtherLines++
		} else if len(file) > 0 && function.Name != 0 {
			function.Filename, line = d.tables.StringBytes(file), number
		}
	}
	end()
	if len(d.lines) > 0 { // inlined into nothing
		d.locations = append(d.locations, d.tables.Location(&dictionary.Location{Address: last.address, Lines: d.lines}))
	}
	return d.tables.Stack(d.locations)
}

// endFrame adds a frame, to the location that the next one is of if it is inlined.
func (d *decoder) endFrame(f *frame, function dictionary.Function, line int64) {
	if function.Name != 0 {
		d.lines = append(d.lines, dictionary.Line{Function: d.tables.Function(function), Line: line})
	}
	if f.inlined {
		return
	}
	l := dictionary.Location{Address: f.address, Lines: d.lines}
	if len(f.file) > 0 {
		l.Mapping = d.tables.Mapping(dictionary.Mapping{Filename: d.tables.StringBytes(f.file)})
	}
	if t := f.frameType(); t != frameUnknown {
		if d.types[t] == 0 {
			d.value = d.value[:0].AppendString([]byte(frameTypeNames[t]))
			d.types[t] = d.tables.Attribute(d.tables.String(string(semconv.ProfileFrameTypeKey)), 0, d.value)
		}
		l.Attributes = []int32{d.types[t]}
	}
	d.locations = append(d.locations, d.tables.Location(&l))
	d.lines = d.lines[:0]
}
