// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotracetranslator

import (
	"encoding/binary"
	"encoding/hex"
	"slices"

	"golang.org/x/exp/trace"
)

// task is a user task. It lives on in the goroutines that took it over.
type task struct {
	id      trace.TaskID
	name    string
	owner   trace.GoID // which began it
	traceID [16]byte   // zero if it is not known
	spanID  [8]byte
}

// inside is a task, or a region of a task, that a goroutine is in.
type inside struct {
	task     *task // nil for a region of none, or of one that began before the trace
	isRegion bool
	region   string
}

// annotation is what the innermost task and region of a goroutine say of it.
type annotation struct {
	task, region string
	traceID      [16]byte
	spanID       [8]byte
}

// Categories of logs within a task that identify the span which it stands for: hex digits, and what Datadog's library writes,
// 8 bytes.
const (
	logTraceID       = "trace_id"
	logSpanID        = "span_id"
	logDatadogSpanID = "datadog.uint64_span_id"
)

// maxInside is how many tasks and regions of a goroutine are followed.
const maxInside = 64

// inherit makes a new goroutine work for the task of its creator.
func (f *follower) inherit(g, creator *goroutine) {
	for _, in := range slices.Backward(creator.inside) {
		if in.task != nil {
			g.inside = []inside{{task: in.task}}
			f.entered++
			g.annotation = f.annotationOf(g)
			return
		}
	}
}

func (f *follower) beginOrEndTask(event *trace.Event) {
	t := event.Task()
	if event.Kind() == trace.EventTaskBegin {
		begun := &task{id: t.ID, name: t.Type, owner: event.Goroutine()}
		f.tasks[t.ID] = begun
		f.enter(event, inside{task: begun})
	} else if ended := f.tasks[t.ID]; ended != nil {
		f.leave(event, ended.owner, inside{task: ended})
		delete(f.tasks, t.ID)
	}
}

func (f *follower) enterOrLeaveRegion(event *trace.Event) {
	r := event.Region()
	if event.Kind() == trace.EventRegionBegin {
		f.enter(event, inside{task: f.tasks[r.Task], isRegion: true, region: r.Type})
		return
	}
	in := inside{isRegion: true, region: r.Type}
	if g := f.goroutines[event.Goroutine()]; g != nil { // the task may have ended
		for _, entered := range slices.Backward(g.inside) {
			if entered.isRegion && entered.region == r.Type && (entered.task == nil || entered.task.id == r.Task) {
				in = entered
				break
			}
		}
	}
	f.leave(event, event.Goroutine(), in)
}

func (f *follower) enter(event *trace.Event, in inside) {
	id := event.Goroutine()
	g := f.goroutines[id]
	switch {
	case g == nil:
	case len(g.inside) == maxInside:
		f.droppedNames++
	default:
		f.interval(id, g, f.stackOf(event, id))
		g.inside = append(g.inside, in)
		f.entered++
		g.annotation = f.annotationOf(g)
	}
}

func (f *follower) leave(event *trace.Event, id trace.GoID, in inside) {
	g := f.goroutines[id]
	if g == nil {
		return
	}
	for i, entered := range slices.Backward(g.inside) {
		if entered == in {
			f.interval(id, g, f.stackOf(event, id))
			g.inside = slices.Delete(g.inside, i, i+1)
			f.entered--
			g.annotation = f.annotationOf(g)
			return
		}
	}
}

// identify notes the span that a task stands for.
func (f *follower) identify(event *trace.Event) {
	log := event.Log()
	t := f.tasks[log.Task]
	if t == nil {
		return
	}
	before := *t
	switch log.Category {
	case logTraceID:
		decodeID(t.traceID[:], log.Message)
	case logSpanID:
		decodeID(t.spanID[:], log.Message)
	case logDatadogSpanID:
		if len(log.Message) == len(t.spanID) {
			binary.BigEndian.PutUint64(t.spanID[:], binary.LittleEndian.Uint64([]byte(log.Message)))
		}
	}
	if *t == before {
		return
	}
	for _, id := range slices.Compact([]trace.GoID{t.owner, event.Goroutine()}) {
		if g := f.goroutines[id]; g != nil {
			f.interval(id, g, f.stackOf(event, id))
			g.annotation = f.annotationOf(g)
		}
	}
}

// decodeID sets an id to hex digits of its length.
func decodeID(id []byte, digits string) {
	if decoded, err := hex.DecodeString(digits); err == nil && len(decoded) == len(id) {
		copy(id, decoded)
	}
}

// annotationOf returns the number of the annotation of a goroutine.
func (f *follower) annotationOf(g *goroutine) int32 {
	var of annotation
	hasTask, hasRegion := false, false
	for _, in := range slices.Backward(g.inside) {
		if in.isRegion && !hasRegion {
			hasRegion, of.region = true, in.region
		}
		if in.task != nil && !hasTask {
			hasTask, of.task, of.traceID, of.spanID = true, in.task.name, in.task.traceID, in.task.spanID
		}
	}
	if of.spanID == [8]byte{} { // a trace alone is no link
		of.traceID = [16]byte{}
	}
	return f.annotations.of(of)
}

// resetAnnotations forgets the annotations of tasks and regions that have ended. Programs may begin a task for each request.
func (f *follower) resetAnnotations() {
	clear(f.annotations.number)
	f.annotations.list = f.annotations.list[:0]
	f.annotations.of(annotation{})
	for _, g := range f.goroutines {
		g.annotation = f.annotationOf(g)
	}
}
