// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
)

// By says of what lanes are.
type By string

// Lanes are of goroutines or else threads, where samples name them, or of processes.
const (
	ByThread  By = "thread"
	ByProcess By = "process"
)

// Lane is a thread, a goroutine or a process.
type Lane struct {
	// Key identifies the lane: a hash of its resource and of what tells lanes of one resource apart.
	Key string
	// Name is that of the thread, goroutine or process, and Of says where it runs.
	Name, Of string
	// Events is the number of events in the range.
	Events int64
	// First and Last are the start of the first one and the end of the last one, within the range.
	First, Last uint64
}

// LaneList lists the lanes of a range.
type LaneList struct {
	from, to uint64
	by       By
	matches  func(*Lane) bool
	most     int

	lanes map[string]*Lane // nil of those that do not match
	namer namer
	// Untimed is the number of samples without timestamps.
	Untimed int
	// More is the number of events of lanes beyond the limit, which are not listed.
	More int64
}

// laneSize is the memory of a Lane in bytes without its texts, of which maxLaneText bounds each.
const (
	laneSize    = 1 << 10
	maxLaneText = 200
)

// NewLaneList returns a list without lanes. matches selects lanes by their names, nil is all. The list takes at most limit bytes.
func NewLaneList(from, to uint64, by By, matches func(*Lane) bool, limit int64) *LaneList {
	return &LaneList{from: from, to: to, by: by, matches: matches, most: int(limit / laneSize), lanes: map[string]*Lane{}, namer: namer{by: by}}
}

// Add adds the lanes of a payload.
func (l *LaneList) Add(ctx context.Context, pd pprofile.Profiles) error {
	l.namer.reset()
	untimed, err := each(ctx, pd, func(s *sample) error {
		if !s.isDrawn() {
			return nil
		}
		var found Lane
		for k := range s.timestamps.Len() {
			if start, end, ok := cut(s, k, l.from, l.to); ok {
				found.add(start, end, 1)
			}
		}
		if found.Events == 0 {
			return nil
		}
		key := l.namer.key(s)
		lane, known := l.lanes[key]
		if !known {
			if len(l.lanes) == l.most {
				l.More += found.Events
				return nil
			}
			if lane = l.namer.lane(key, s); l.matches != nil && !l.matches(lane) {
				lane = nil
			}
			l.lanes[key] = lane
		}
		if lane != nil {
			lane.add(found.First, found.Last, found.Events)
		}
		return nil
	})
	l.Untimed += untimed
	return err
}

// add adds n events, from the start of the first one to the end of the last one.
func (l *Lane) add(start, end uint64, n int64) {
	if l.Events == 0 || start < l.First {
		l.First = start
	}
	l.Last = max(l.Last, end)
	l.Events += n
}

// Lanes returns all lanes, those with most events first.
func (l *LaneList) Lanes() []*Lane {
	all := make([]*Lane, 0, len(l.lanes))
	for _, lane := range l.lanes {
		if lane != nil {
			all = append(all, lane)
		}
	}
	slices.SortFunc(all, func(a, b *Lane) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), strings.Compare(a.Of, b.Of), strings.Compare(a.Name, b.Name), strings.Compare(a.Key, b.Key))
	})
	return all
}

// cut returns the part of an event in a range. An instant is in the range that has its time.
func cut(s *sample, k int, from, to uint64) (start, end uint64, ok bool) {
	start, end = s.extent(k)
	if start == end {
		return start, end, from <= start && start < to
	}
	start, end = max(start, from), min(end, to)
	return start, end, start < end
}

// namer tells lanes apart.
type namer struct {
	by By

	resource pprofile.ResourceProfiles
	hash     uint64 // of the resource
	hashed   bool
	keys     map[laneParts]string
	buffer   []byte
}

// laneParts are what tells the lanes of a resource apart.
type laneParts struct {
	hash                               uint64
	goroutine, thread, name, processID string
}

// reset starts with another payload, whose texts are other ones.
func (n *namer) reset() { n.hashed, n.keys = false, map[laneParts]string{} }

// key returns the Key of the lane of a sample.
func (n *namer) key(s *sample) string {
	if !n.hashed || n.resource != s.resource {
		n.resource, n.hashed = s.resource, true
		n.hash = processes.HashResource(s.resource.Resource().Attributes())
	}
	parts := laneParts{hash: n.hash, processID: s.attribute(roleProcess)}
	if n.by == ByThread {
		if parts.goroutine = s.attribute(roleGoroutine); parts.goroutine == "" {
			parts.thread, parts.name = s.attribute(roleThread), s.attribute(roleThreadName)
		}
	}
	key, known := n.keys[parts]
	if !known {
		n.buffer = binary.LittleEndian.AppendUint64(n.buffer[:0], parts.hash)
		for _, text := range [...]string{parts.goroutine, parts.thread, parts.name, parts.processID} {
			n.buffer = binary.LittleEndian.AppendUint64(n.buffer, uint64(len(text)))
			n.buffer = append(n.buffer, text...)
		}
		key = hex.EncodeToString(binary.BigEndian.AppendUint64(nil, xxhash.Sum64(n.buffer)))
		n.keys[parts] = key
	}
	return key
}

// lane names the lane of a sample.
func (n *namer) lane(key string, s *sample) *Lane {
	attributes := s.resource.Resource().Attributes()
	of := func(r role, key string) string {
		if text := s.attribute(r); text != "" {
			return dictionary.ValidUTF8(text)
		}
		return dictionary.TextOf(attributes, key)
	}
	var where []string
	add := func(text string) {
		if text != "" && !slices.Contains(where, text) {
			where = append(where, text)
		}
	}
	process := of(roleProcessName, "process.executable.name")
	if id := of(roleProcess, "process.pid"); id != "" {
		process = strings.TrimSpace(process + " pid " + id)
	}
	name := ""
	if n.by == ByThread {
		id, title := dictionary.ValidUTF8(s.attribute(roleThread)), dictionary.ValidUTF8(s.attribute(roleThreadName))
		switch goroutine := dictionary.ValidUTF8(s.attribute(roleGoroutine)); {
		case goroutine != "":
			name = strings.TrimSpace("goroutine " + goroutine + " " + rootOf(s))
		case title != "" && id != "":
			name = title + " (" + id + ")"
		case id != "":
			name = "thread " + id
		default:
			name = title
		}
	}
	add(dictionary.TextOf(attributes, "service.name"))
	for _, key := range []string{"service.instance.id", "k8s.pod.name", "container.id", "host.name"} {
		if text := dictionary.TextOf(attributes, key); text != "" && len(where) < 2 {
			add(text)
		}
	}
	if name == "" {
		name = cmp.Or(process, "process")
	} else {
		add(process)
	}
	return &Lane{Key: key, Name: shortened(name), Of: shortened(strings.Join(where, ", "))}
}

// rootOf names the outermost function of a sample.
func rootOf(s *sample) string {
	dict := s.payload.dict
	locations := dict.StackTable().At(int(s.StackIndex())).LocationIndices()
	if locations.Len() == 0 {
		return ""
	}
	lines := dict.LocationTable().At(int(locations.At(locations.Len() - 1))).Lines()
	if lines.Len() == 0 {
		return ""
	}
	return validText(dict, dict.FunctionTable().At(int(lines.At(lines.Len()-1).FunctionIndex())).NameStrindex())
}

func shortened(text string) string {
	if len(text) > maxLaneText {
		return dictionary.ValidUTF8(strings.ToValidUTF8(text[:maxLaneText], "")) + "…"
	}
	return text
}

// Track is what a lane does in the slots of a range.
type Track struct {
	*Lane

	// Time is how long the lane is in each state, by the index of the state and then by slot, in nanoseconds. Events that
	// overlap count each. A state without time in the lane has nil.
	Time [][]uint64
	// Instants is the number of events without a length of each slot, nil if there are none.
	Instants []uint32
	// IsExact says that Exact has all events, in the order of their starts. Otherwise it is empty.
	IsExact bool
	Exact   []Event

	whole [][]int64 // by state: how many events cover a slot, as differences from one slot to the next
}

// Event is a sample with a timestamp, of which a part is in a range.
type Event struct {
	Start, End uint64 // of all of it; equal if it is an instant
	Value      int64
	State      int   // in Tracks.States
	Stack      int32 // node of Tracks.Tree; -1 if the tree has no room for it
}

// Events are kept one by one of lanes that have at most MaxExact of them, and at most maxEvents of all lanes together: those of the lanes
// with the fewest.
const (
	MaxExact  = 4000
	maxEvents = 40_000
	eventSize = 48
)

// Tracks fills the slots of lanes.
type Tracks struct {
	*Stacks

	// States are those of all lanes; the last of maxStates is all others.
	States []State
	// Slots is how many parts the range has.
	Slots int

	from, to uint64
	namer    namer
	lanes    map[string]*Track
	places   map[State]int
	free     int64 // bytes
}

const maxStates = 24

// errTracks says that tracks take too much memory.
var errTracks = errors.New("the lanes take too much memory: select a shorter range, or fewer lanes")

// NewTracks returns tracks without events of lanes. They take at most limit bytes. There are no more slots than nanoseconds.
func NewTracks(from, to uint64, slots int, by By, lanes []*Lane, limit int64) *Tracks {
	slots = int(min(uint64(slots), to-from))
	t := &Tracks{
		Stacks: NewStacks(Grid{}, Cells{}, limit/2), Slots: slots, from: from, to: to,
		namer: namer{by: by}, lanes: map[string]*Track{}, places: map[State]int{}, free: limit / 2,
	}
	for _, lane := range lanes {
		t.lanes[lane.Key] = &Track{Lane: lane, Time: make([][]uint64, maxStates), whole: make([][]int64, maxStates)}
	}
	fewest := slices.Clone(lanes)
	slices.SortStableFunc(fewest, func(a, b *Lane) int { return cmp.Compare(a.Events, b.Events) })
	room := min(maxEvents, t.free/4/eventSize)
	for _, lane := range fewest {
		if room -= lane.Events; room < 0 || lane.Events > MaxExact {
			break
		}
		t.lanes[lane.Key].IsExact = true
		t.free -= lane.Events * eventSize
	}
	return t
}

// Edge returns the start of a slot, or the end of the one before. The first slots may be longer by a nanosecond.
func (t *Tracks) Edge(slot int) uint64 { return edge(t.from, t.to, t.Slots, slot) }

func edge(from, to uint64, slots, slot int) uint64 {
	length := to - from
	whole, rest := length/uint64(slots), length%uint64(slots)
	return from + whole*uint64(slot) + min(rest, uint64(slot))
}

// slotOf returns the slot of a time in the range.
func (t *Tracks) slotOf(at uint64) int {
	length, since := t.to-t.from, at-t.from
	whole, rest := length/uint64(t.Slots), length%uint64(t.Slots)
	if since < rest*(whole+1) {
		return int(since / (whole + 1))
	}
	return int(rest + (since-rest*(whole+1))/whole)
}

// Add adds the events of a payload.
func (t *Tracks) Add(ctx context.Context, pd pprofile.Profiles) error {
	t.namer.reset()
	t.builder.start(pd)
	_, err := each(ctx, pd, func(s *sample) error {
		if !s.isDrawn() {
			return nil
		}
		track := t.lanes[t.namer.key(s)]
		if track == nil {
			return nil
		}
		state, node := -1, int32(-1)
		for k := range s.timestamps.Len() {
			start, end, ok := cut(s, k, t.from, t.to)
			if !ok {
				continue
			}
			if state < 0 {
				state = t.stateOf(s.state)
				if track.IsExact {
					if made, err := t.builder.node(s.StackIndex()); err == nil {
						node = made
					}
				}
			}
			if err := t.add(track, state, start, end); err != nil {
				return err
			}
			if track.IsExact && int64(len(track.Exact)) < track.Events { // more would be of a file that was not listed
				first, last := s.extent(k)
				track.Exact = append(track.Exact, Event{Start: first, End: last, Value: s.value(k), State: state, Stack: node})
			}
		}
		return nil
	})
	return err
}

// stateOf returns the index of a state.
func (t *Tracks) stateOf(s State) int {
	place, known := t.places[s]
	if !known {
		if len(t.States) == maxStates-1 {
			t.States = append(t.States, State{State: "other"})
		}
		if place = len(t.States); place == maxStates {
			return maxStates - 1
		}
		t.places[s], t.States = place, append(t.States, s)
	}
	return place
}

// add adds an event, in a time that does not depend on how many slots it covers.
func (t *Tracks) add(track *Track, state int, start, end uint64) error {
	if start == end {
		if track.Instants == nil {
			if t.free -= 4 * int64(t.Slots); t.free < 0 {
				return errTracks
			}
			track.Instants = make([]uint32, t.Slots)
		}
		if i := t.slotOf(start); track.Instants[i] < math.MaxUint32 {
			track.Instants[i]++
		}
		return nil
	}
	if track.Time[state] == nil {
		if t.free -= 16 * int64(t.Slots+1); t.free < 0 {
			return errTracks
		}
		track.Time[state], track.whole[state] = make([]uint64, t.Slots), make([]int64, t.Slots+1)
	}
	times, first, last := track.Time[state], t.slotOf(start), t.slotOf(end-1)
	if first == last {
		times[first] = addClamped(times[first], end-start)
		return nil
	}
	times[first] = addClamped(times[first], t.Edge(first+1)-start)
	times[last] = addClamped(times[last], end-t.Edge(last))
	track.whole[state][first+1]++
	track.whole[state][last]--
	return nil
}

// Tracks returns the tracks of lanes in their order. No more events can be added afterwards.
func (t *Tracks) Tracks(lanes []*Lane) []*Track {
	var all []*Track
	for _, lane := range lanes {
		track := t.lanes[lane.Key]
		for state, whole := range track.whole {
			covering := int64(0)
			for i := range track.Time[state] {
				covering += whole[i]
				track.Time[state][i] = addClamped(track.Time[state][i], multiplyClamped(uint64(covering), t.Edge(i+1)-t.Edge(i)))
			}
		}
		track.whole = nil
		slices.SortStableFunc(track.Exact, func(a, b Event) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End)) })
		all = append(all, track)
	}
	return all
}

// Longest returns the state that a lane is in for most of a slot, and for how long; -1 if it is in none.
func (t *Track) Longest(slot int) (state int, time uint64) {
	state = -1
	for i, times := range t.Time {
		if times != nil && times[slot] > time {
			state, time = i, times[slot]
		}
	}
	return state, time
}
