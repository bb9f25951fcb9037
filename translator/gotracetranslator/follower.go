// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotracetranslator

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"golang.org/x/exp/trace"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
)

const (
	// sliceIntervals is how many intervals a slice has at least, unless it is the last one. Each goroutine that lives at
	// its end adds one, so there are also several for each of these.
	sliceIntervals   = 64 << 10
	intervalsForEach = 4

	// checkedEvents is after how many events the memory is checked, besides after each batch.
	checkedEvents = 4 << 10

	// maxLength is how long a trace may be: wrong clocks make longer ones.
	maxLength = 50 * 365 * 24 * time.Hour
)

// follower follows the goroutines of a trace.
type follower struct {
	memory  *meter
	open    func() io.Reader // reads the trace from its start
	batches *batches
	events  *trace.Reader
	ahead   *batches // while discover runs
	out     *output  // while nextSlice runs

	stacks      stacks
	annotations interned[annotation] // number 0 is none
	reasons     reasons
	goroutines  map[trace.GoID]*goroutine
	tasks       map[trace.TaskID]*task // that have not ended
	entered     int                    // tasks and regions of all goroutines

	clock  clock
	now    trace.Time // of the last event
	synced trace.Time // start of the current generation
	first  trace.Time // of the trace
	began  trace.Time // start of the current slice
	seen   int        // events

	generations int // that have begun
	slices      int // that have ended
	ended       bool
	damage      error
	slice       slice
	ordered     []trace.GoID // of cut

	droppedNames int
}

// goroutine is one that lives, from the start of its current interval.
type goroutine struct {
	since      trace.Time
	state      trace.GoState
	reason     int32    // number of a reason
	stack      int32    // number of the stack at the start of the interval
	annotation int32    // number of that of its innermost task and region
	inside     []inside // tasks and regions, the innermost last
	assist     bool     // it marks objects for the garbage collector, as far as it runs
	// samples are the numbers of its last samples in a slice, by state.
	samples [len(stateNames)]int32
}

func newFollower(from func() io.Reader, start time.Time, memory *meter) (f *follower, err error) {
	f = &follower{
		memory: memory, open: from, goroutines: map[trace.GoID]*goroutine{}, tasks: map[trace.TaskID]*task{},
		stacks: newStacks(), reasons: newReasons(), clock: clock{start: start},
	}
	f.annotations.of(annotation{})
	f.batches = newBatches(from(), f.check)
	if f.events, err = trace.NewReader(f.batches); err != nil {
		return nil, err
	}
	return f, nil
}

// failure is why there are no more slices.
func (f *follower) failure() error {
	if f.damage == nil {
		f.damage = errors.New("it has no goroutines")
	}
	return fmt.Errorf("execution trace: %w", f.damage)
}

// held is about how much memory the translation takes besides its result, in bytes. golang.org/x/exp/trace
// follows goroutines and tasks, too.
func (f *follower) held() int {
	const ofGoroutine, ofInside, ofTask, ofAnnotation = 640, 96, 512, 256
	ahead := 0
	if f.ahead != nil {
		ahead = f.ahead.held()
	}
	return ahead + f.batches.held() + f.stacks.held() + f.reasons.held() + f.slice.held() +
		ofGoroutine*len(f.goroutines) + ofInside*f.entered + ofTask*len(f.tasks) + ofAnnotation*len(f.annotations.list)
}

// check returns an error if the translation needs more memory than is allowed.
func (f *follower) check() error {
	size := f.held()
	if f.out != nil {
		size += f.out.tables.Retained() + f.out.size()
	}
	return f.memory.need(size)
}

// nextSlice reads events until a slice ends, and adds it to out. It returns io.EOF after the last one. Any other error is not
// one of the trace.
func (f *follower) nextSlice(out *output) error {
	f.out = out
	defer func() { f.out = nil }()
	for !f.ended {
		event, err := read(f.events)
		switch {
		case f.batches.err != nil:
			return f.batches.err
		case err == io.EOF: //nolint:errorlint // damage may wrap it
			f.ended = true
		case err != nil:
			f.fail(err)
		default:
			f.handle(&event)
		}
		if f.seen++; f.seen%checkedEvents == 0 {
			if err := f.check(); err != nil {
				return err
			}
		}
		if f.ended || len(f.slice.intervals) >= max(sliceIntervals, intervalsForEach*len(f.goroutines)) {
			if err := f.cut(); err != nil {
				return err
			}
			if len(f.slice.intervals) > 0 {
				return f.write()
			}
		}
	}
	return io.EOF
}

// fail ends the trace, which is damaged.
func (f *follower) fail(err error) { f.ended, f.damage = true, err }

// read returns the next event. A panic of golang.org/x/exp/trace is damage, too.
func read(events *trace.Reader) (event trace.Event, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("reading an event: %v", value)
		}
	}()
	return events.ReadEvent()
}

// handle follows an event. golang.org/x/exp/trace may panic when it decodes a damaged one.
func (f *follower) handle(event *trace.Event) {
	defer func() {
		if value := recover(); value != nil {
			f.fail(fmt.Errorf("event after %d others: %v", f.seen, value))
		}
	}()
	at := event.Time()
	if f.seen > 0 && (at < f.now || uint64(at)-uint64(f.first) > uint64(maxLength)) {
		f.fail(fmt.Errorf("event after %d others: its time is %d ns, after %d ns", f.seen, at, f.now))
		return
	}
	f.now = at
	switch event.Kind() {
	case trace.EventSync:
		f.sync(event.Sync())
	case trace.EventStateTransition:
		if t := event.StateTransition(); t.Resource.Kind == trace.ResourceGoroutine {
			f.transition(event, &t)
		}
	case trace.EventRangeBegin, trace.EventRangeActive:
		f.setAssist(event, true)
	case trace.EventRangeEnd:
		f.setAssist(event, false)
	case trace.EventTaskBegin, trace.EventTaskEnd:
		f.beginOrEndTask(event)
	case trace.EventRegionBegin, trace.EventRegionEnd:
		f.enterOrLeaveRegion(event)
	case trace.EventLog:
		f.identify(event)
	}
}

// sync handles the start of a generation, and the end of the trace.
func (f *follower) sync(s trace.Sync) {
	if f.seen == 0 {
		f.first, f.began = f.now, f.now
		f.clock.set(f.now, s.ClockSnapshot)
	}
	f.synced = f.now
	f.generations++
	f.stacks.nextGeneration()
}

// transition ends the interval of a goroutine, and begins the next one.
func (f *follower) transition(event *trace.Event, t *trace.StateTransition) {
	id := t.Resource.Goroutine()
	from, to := t.Goroutine()
	g := f.goroutines[id]
	switch {
	case from == to:
		return // the start of a generation says so
	case from == trace.GoUndetermined:
		if g == nil {
			f.appear(id, t, to)
		}
		return
	case g != nil:
		f.interval(id, g, f.stacks.number(t.Stack))
	case to == trace.GoNotExist:
		return
	default:
		g = &goroutine{since: f.now}
		if creator := f.goroutines[event.Goroutine()]; creator != nil {
			f.inherit(g, creator)
		}
		f.goroutines[id] = g
	}
	if to == trace.GoNotExist {
		f.entered -= len(g.inside)
		delete(f.goroutines, id)
		return
	}
	if t.Stack != trace.NoStack { // otherwise it is where it was
		g.stack = f.stacks.number(t.Stack)
	}
	g.state = to
	g.reason = f.reasons.of(from, to, t.Reason, g.stack, &f.stacks)
}

// interval adds what a goroutine did until now, and begins the next interval in the same state. end is the number of its
// stack now, 0 if that is not known.
func (f *follower) interval(id trace.GoID, g *goroutine, end int32) {
	state := stateNumber(g.state)
	if state < 0 || f.now <= g.since {
		return
	}
	stack, reason := g.stack, g.reason
	if g.state == trace.GoRunning {
		stack = f.stacks.common(g.stack, end)
		if reason = noReason; g.assist || f.stacks.isCollector(stack) {
			reason = reasonGC
		}
		if end != 0 {
			g.stack = end
		}
	}
	number := &g.samples[state]
	if of := (sample{id, state, reason, g.annotation, stack}); !f.slice.has(*number, of) {
		*number = f.slice.number(of)
	}
	f.slice.add(*number, g.since, f.now)
	g.since = f.now
}

// stateNames are the states by their number.
var stateNames = [...]string{timing.Running, timing.Runnable, timing.Blocked, timing.Syscall}

// stateNumber is the index of a state in stateNames, or -1.
func stateNumber(state trace.GoState) int8 {
	switch state {
	case trace.GoRunning:
		return 0
	case trace.GoRunnable:
		return 1
	case trace.GoWaiting:
		return 2
	case trace.GoSyscall:
		return 3
	}
	return -1
}

// setAssist notes that a goroutine begins or ends to mark objects for the garbage collector.
func (f *follower) setAssist(event *trace.Event, assist bool) {
	const rangeAssist = "GC mark assist"
	if r := event.Range(); r.Name == rangeAssist && r.Scope.Kind == trace.ResourceGoroutine {
		id := r.Scope.Goroutine()
		if g := f.goroutines[id]; g != nil && g.assist != assist {
			f.interval(id, g, f.stackOf(event, id))
			g.assist = assist
		}
	}
}

// stackOf is the number of the stack of a goroutine at an event, 0 if that is of another one.
func (f *follower) stackOf(event *trace.Event, id trace.GoID) int32 {
	if event.Goroutine() != id {
		return 0
	}
	return f.stacks.number(event.Stack())
}

// cut ends the slice now, with a part of the interval of each goroutine, of which the rest goes into the next one.
func (f *follower) cut() error {
	if f.generations == 1 && !f.ended {
		if err := f.discover(); err != nil {
			return err
		}
	}
	f.ordered = slices.AppendSeq(f.ordered[:0], maps.Keys(f.goroutines))
	slices.Sort(f.ordered)
	for _, id := range f.ordered {
		f.interval(id, f.goroutines[id], 0)
	}
	return nil
}

// discover finds the goroutines that the rest of the first generation is the first to name. They live, in the state that it
// says, since the trace began. Later generations name no goroutine that they do not start.
func (f *follower) discover() error {
	f.generations++ // once is enough
	f.ahead = newBatches(f.open(), f.check)
	defer func() {
		f.ahead = nil
		_ = recover() // of golang.org/x/exp/trace, which decodes the same event again later
	}()
	events, err := trace.NewReader(f.ahead)
	for skipped, syncs := 0, 0; err == nil; skipped++ {
		var event trace.Event
		if event, err = read(events); err != nil {
			break
		}
		if event.Kind() == trace.EventSync {
			if syncs++; syncs > 1 {
				return nil
			}
		}
		if skipped < f.seen || event.Kind() != trace.EventStateTransition {
			continue
		}
		t := event.StateTransition()
		if t.Resource.Kind != trace.ResourceGoroutine {
			continue
		}
		if from, to := t.Goroutine(); from == trace.GoUndetermined && f.goroutines[t.Resource.Goroutine()] == nil {
			f.appear(t.Resource.Goroutine(), &t, to)
		}
	}
	return f.ahead.err // other errors are damage, which comes later
}

// appear adds a goroutine that lives in a state since the generation began, or longer.
func (f *follower) appear(id trace.GoID, t *trace.StateTransition, state trace.GoState) {
	if state == trace.GoNotExist {
		return
	}
	g := &goroutine{since: max(f.synced, f.began), state: state, stack: f.stacks.number(t.Stack)}
	g.reason = f.reasons.of(trace.GoUndetermined, state, t.Reason, g.stack, &f.stacks)
	f.goroutines[id] = g
}

// write writes the slice, and begins the next one.
func (f *follower) write() error {
	if err := f.check(); err != nil {
		return err
	}
	f.out.add(f, f.clock.at(f.began))
	f.slice.reset()
	f.resetAnnotations()
	f.began = f.now
	f.slices++
	return nil
}

// clock turns the times of a trace into times of the day. One snapshot serves for all of a trace, so that durations stay as
// they are.
type clock struct {
	start time.Time // of the trace, if it does not say that itself
	known bool
	zero  int64 // time of the day when the trace has the time 0, in nanoseconds
}

// set sets the clock at the start of a trace, which is at the given time of the trace.
func (c *clock) set(began trace.Time, snapshot *trace.ClockSnapshot) {
	if c.known {
		return
	}
	c.known = true
	c.zero = c.start.UnixNano() - int64(began)
	if snapshot == nil {
		return
	}
	if year := snapshot.Wall.UTC().Add(began.Sub(snapshot.Trace)).Year(); year > 1970 && year < 2100 {
		c.zero = snapshot.Wall.UnixNano() - int64(snapshot.Trace)
	}
}

func (c *clock) at(t trace.Time) time.Time { return time.Unix(0, c.zero+int64(t)) }
