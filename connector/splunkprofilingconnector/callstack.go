// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingconnector

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
)

// frame is a line of a call stack.
type frame struct {
	function string // with its class or module
	file     string // "" if it is unknown
	line     int64  // the first one of a range; 0 if it is unknown
	column   int64  // likewise
}

// callStack is a body that is text.
type callStack struct {
	threadName  string
	threadID    int64 // 0 if it is unknown
	threadOSID  int64 // 0 if it is unknown
	threadState string
	dropped     int     // fields of the line about the thread that no attribute has
	frames      []frame // the leaf first
}

// maxShown bounds the part of a line that an error shows, in bytes.
const maxShown = 80

// parseCallStack parses a body that is text: a line about the thread, a line with its
// state, both of which may be empty, and a line for each frame, the leaf first. A Java agent
// also writes lines about locks, which are left out. The error names the line.
func parseCallStack(text string) (callStack, error) {
	var s callStack
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		switch {
		case number == 1 && !isFrame(line):
			s.readThread(line)
		case number == 2 && !isFrame(line):
			_, state, _ := strings.Cut(line, ":") // the text after the colon, up to a space
			s.threadState, _, _ = strings.Cut(strings.TrimSpace(state), " ")
		case line == "" || strings.HasPrefix(line, "- "):
		default:
			f, err := parseFrame(line)
			if err != nil {
				return callStack{}, fmt.Errorf("line %d: %q: %w", number, line[:min(len(line), maxShown)], err)
			}
			s.frames = append(s.frames, f)
		}
	}
	if len(s.frames) == 0 {
		return callStack{}, errors.New("no frame, want a line such as \"at namespace.function(file:line)\"")
	}
	return s, nil
}

// isFrame reports whether one of the first two lines is a frame: an agent may leave out the
// lines about the thread.
func isFrame(line string) bool { return strings.HasPrefix(line, "at ") }

// readThread reads the line about the thread, as a JVM prints it:
//
//	"pool-1" #49 prio=5 os_prio=31 cpu=0.12ms elapsed=8.50s tid=0x7fde nid=0xba03 runnable
//
// Priorities, times, the address of the thread and the status at the end are counted as dropped: times make each sample
// different, and the next line has the state.
func (s *callStack) readThread(line string) {
	if end := strings.LastIndexByte(line, '"'); end > 0 && line[0] == '"' {
		s.threadName, line = line[1:end], line[end+1:]
	}
	status := false
	for word := range strings.FieldsSeq(line) {
		key, value, isField := strings.Cut(word, "=")
		number, isIndex := strings.CutPrefix(word, "#")
		switch {
		case isIndex && s.threadID == 0:
			s.threadID, _ = strconv.ParseInt(number, 10, 64)
		case isField && key == "nid":
			s.threadOSID, _ = strconv.ParseInt(value, 0, 64)
		case isField:
			s.dropped++
		case !status:
			status = true // of several words
			s.dropped++
		}
	}
}

// parseFrame reads "at namespace.function(file:line:column)". Splunk's convention had other forms of the place before:
// "(file:line column)", and "(file:line:line column:column)" for a range, of which the frame keeps the start. Both "at "
// and the place may be incomplete: "(file)", "(Native Method)", "(unknown)"; .NET writes "(file:line col:7)".
// See https://github.com/signalfx/gdi-specification/blob/main/specification/semantic_conventions.md.
func parseFrame(line string) (frame, error) {
	line = strings.TrimPrefix(line, "at ")
	// A function may hold parentheses of its own, a file rarely does.
	open := strings.LastIndexByte(line, '(')
	if open <= 0 || !strings.HasSuffix(line, ")") {
		return frame{}, errors.New(`must be "at namespace.function(file:line)"`)
	}
	f := frame{function: strings.TrimSpace(line[:open])}
	file, lines := cutNumbers(line[open+1 : len(line)-1])
	var columns []int64
	if space := strings.LastIndexByte(line, ' '); space > open { // columns come after lines, or the space is of the file
		rest, after := cutNumbers(":" + strings.TrimPrefix(line[space+1:len(line)-1], "col:"))
		if name, before := cutNumbers(line[open+1 : space]); rest == "" && len(before) > 0 {
			file, lines, columns = name, before, after
		}
	}
	if len(lines) > 1 && len(columns) == 0 {
		columns = lines[1:]
	}
	if len(lines) > 0 {
		f.line = lines[0]
	}
	if len(columns) > 0 {
		f.column = columns[0]
	}
	if file != "unknown" && file != "Unknown Source" {
		f.file = file
	}
	return f, nil
}

// cutNumbers cuts one or two numbers, each after a colon, off the end of a place. A file may hold other colons.
func cutNumbers(place string) (file string, numbers []int64) {
	for range 2 {
		i := strings.LastIndexByte(place, ':')
		if i < 0 {
			break
		}
		number, err := strconv.ParseInt(place[i+1:], 10, 32)
		if err != nil {
			break
		}
		place, numbers = place[:i], append([]int64{max(number, 0)}, numbers...)
	}
	return place, numbers
}

// callStacks collects call stacks that are text in one profile.
type callStacks struct {
	p         profile.Profile
	moments   []moment
	locations map[frame]*profile.Location
	dropped   int // fields of threads that no attribute has, of all samples
}

// newCallStacks returns a collection of call stacks, whose values are bytes if they are of allocations.
func newCallStacks(allocation bool) *callStacks {
	c := &callStacks{locations: map[frame]*profile.Location{}}
	if allocation {
		c.p.SampleType = []*profile.ValueType{{Type: "allocationSize", Unit: "bytes"}}
	}
	return c
}

// add adds the call stack of a record.
func (c *callStacks) add(s callStack, record plog.LogRecord) {
	attributes := record.Attributes()
	m := moment{at: int64(min(timeOf(record), math.MaxInt64)), period: nanoseconds(integer(attributes, labelPeriod))}
	sample := &profile.Sample{Label: map[string][]string{}, NumLabel: map[string][]int64{}}
	if len(c.p.SampleType) > 0 { // of allocations
		sample.Value, m.period = []int64{integer(attributes, attributeAllocated)}, 0
	}
	for _, f := range s.frames {
		sample.Location = append(sample.Location, c.location(f))
	}
	for key, text := range map[string]string{
		"thread.name": s.threadName, "thread.state": s.threadState, labelEvent: dictionary.TextOf(attributes, labelEvent),
		labelTraceID: record.TraceID().String(), labelSpanID: record.SpanID().String(),
	} {
		if text != "" {
			sample.Label[key] = []string{text}
		}
	}
	for key, number := range map[string]int64{"thread.id": s.threadID, "thread.os.id": s.threadOSID} {
		if number > 0 {
			sample.NumLabel[key] = []int64{number}
		}
	}
	c.dropped += s.dropped
	c.p.Sample, c.moments = append(c.p.Sample, sample), append(c.moments, m)
}

func (c *callStacks) location(f frame) *profile.Location {
	if known := c.locations[f]; known != nil {
		return known
	}
	id := uint64(len(c.locations) + 1) // equal functions become one in OTLP
	function := &profile.Function{ID: id, Name: f.function, Filename: f.file}
	location := &profile.Location{ID: id, Line: []profile.Line{{Function: function, Line: f.line, Column: f.column}}}
	c.locations[f] = location
	c.p.Function, c.p.Location = append(c.p.Function, function), append(c.p.Location, location)
	return location
}
