// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query/timeline"
)

// Limits of a request for lanes.
const (
	maxLanes     = 100
	defaultLanes = 30
	maxSlots     = 2000
	defaultSlots = 1000
)

// lanesResponse is the response of /api/timeline/lanes.
type lanesResponse struct {
	// From and To are the range, in nanoseconds since the epoch.
	From  string `json:"from"`
	To    string `json:"to"`
	Slots int    `json:"slots"`
	// States are those that Lanes number.
	States []stateName `json:"states"`
	Lanes  []lane      `json:"lanes"`
	// All is how many lanes match, of which Lanes are those from First on. Left is the number of events of lanes beyond the limit.
	All   int   `json:"all"`
	First int   `json:"first"`
	Left  int64 `json:"left,omitempty"`
	// Frames, NodeFrames and Parents are the call tree of the stacks of exact events. Node 0 is its root.
	Frames     []string `json:"frames"`
	NodeFrames []int32  `json:"node_frames"`
	Parents    []int32  `json:"parents"`
	Untimed    int      `json:"untimed"`
	Notes      []string `json:"notes,omitempty"`
}

type stateName struct {
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// lane is one of a response. It has either Events or Runs.
type lane struct {
	Key    string `json:"key"`
	Name   string `json:"name"`
	Of     string `json:"of,omitempty"`
	Events int64  `json:"events"`
	// Exact are four numbers for each event: its start in nanoseconds since the start of the range, negative if that is before, its length, its
	// state, and the node of its stack, -1 if the stack is left out.
	Exact []int64 `json:"exact,omitempty"`
	// Runs are four numbers for each run of slots that look the same: the first slot, how many, the state with most time, and the percentage of the
	// time that it has. A slot with instants only has the state -1.
	Runs []int64 `json:"runs,omitempty"`
}

// apiLanes answers with what threads, goroutines or processes do, by all sample types: events one by one of lanes with few, else the state with most
// time of each slot.
func (p *Page) apiLanes(w http.ResponseWriter, r *http.Request) error {
	params, err := parseParams(r.URL.Query(), defaultRange, p.now())
	if err != nil {
		return err
	}
	values := r.URL.Query()
	by := timeline.By(cmp.Or(values.Get("by"), string(timeline.ByThread)))
	if by != timeline.ByThread && by != timeline.ByProcess {
		return wrong("by", string(by), fmt.Errorf("must be %s or %s", timeline.ByThread, timeline.ByProcess))
	}
	first, err := number(values, "first", 0, 1<<30)
	if err != nil {
		return err
	}
	count, err := number(values, "count", defaultLanes, maxLanes)
	if err != nil {
		return err
	}
	slots, err := number(values, "slots", defaultSlots, maxSlots)
	if err != nil {
		return err
	}
	q, key := strings.ToLower(values.Get("q")), values.Get("lane")
	matches := func(l *timeline.Lane) bool {
		return (key == "" || l.Key == key) && (q == "" || strings.Contains(strings.ToLower(l.Name+" "+l.Of), q))
	}
	sel := *params.selected
	sel.Types = nil // threads do more than what one of them says
	timed, _, missed, err := p.timedTypes(r.Context(), &sel)
	if err != nil {
		return err
	}
	for _, of := range timed { // other records are not read
		sel.Types = append(sel.Types, of.ID)
	}
	from, to := rangeOf(&sel)
	room := p.options().MaxMemory / lanesShare
	list := timeline.NewLaneList(from, to, by, matches, room)
	notes := missed.Notes()
	if len(timed) > 0 {
		if notes, err = p.eachTimed(r.Context(), (*query.Source).EachOverlapping, &sel, list.Add); err != nil {
			return err
		}
	}
	all := list.Lanes()
	first = min(first, len(all))
	shown := all[first:min(len(all), first+count)]
	tracks := timeline.NewTracks(from, to, max(slots, 1), by, shown, room)
	if len(shown) > 0 {
		if _, err = p.eachTimed(r.Context(), (*query.Source).EachOverlapping, &sel, tracks.Add); err != nil {
			return err
		}
	}
	answer := &lanesResponse{
		From: params.fromText(), To: strconv.FormatUint(to, 10), Slots: tracks.Slots, Lanes: []lane{}, All: len(all), First: first, Left: list.More,
		Untimed: list.Untimed, Notes: notes, States: []stateName{}, Frames: []string{}, NodeFrames: []int32{}, Parents: []int32{},
	}
	for _, track := range tracks.Tracks(shown) {
		answer.Lanes = append(answer.Lanes, laneOf(track, tracks, from))
	}
	for _, s := range tracks.States {
		answer.States = append(answer.States, stateName(s))
	}
	for _, f := range tracks.Frames {
		answer.Frames = append(answer.Frames, f.Name)
	}
	for _, n := range tracks.Nodes {
		answer.NodeFrames, answer.Parents = append(answer.NodeFrames, n.Frame), append(answer.Parents, n.Parent)
	}
	return writeJSON(w, answer)
}

// lanesShare is the part of the memory of a query that the list of lanes takes at most, and that their slots, events and stacks take.
const lanesShare = 4

func (p *params) fromText() string {
	from, _ := rangeOf(p.selected)
	return strconv.FormatUint(from, 10)
}

// laneOf writes a track.
func laneOf(track *timeline.Track, tracks *timeline.Tracks, from uint64) lane {
	l := lane{Key: track.Key, Name: track.Name, Of: track.Of, Events: track.Events}
	if track.IsExact {
		for _, e := range track.Exact {
			l.Exact = append(l.Exact, int64(e.Start)-int64(from), int64(min(e.End-e.Start, math.MaxInt64)), int64(e.State), int64(e.Stack))
		}
		return l
	}
	const numbers = 4
	for slot := range tracks.Slots {
		state, time := track.Longest(slot)
		if state < 0 && (track.Instants == nil || track.Instants[slot] == 0) {
			continue
		}
		percentage := int64(min(100, 100*float64(time)/float64(tracks.Edge(slot+1)-tracks.Edge(slot))))
		if n := len(l.Runs); n > 0 && l.Runs[n-numbers]+l.Runs[n-3] == int64(slot) && l.Runs[n-2] == int64(state) && l.Runs[n-1] == percentage {
			l.Runs[n-3]++
			continue
		}
		l.Runs = append(l.Runs, int64(slot), 1, int64(state), percentage)
	}
	return l
}

// number reads a parameter that is a whole number.
func number(values url.Values, key string, byDefault, most int) (int, error) {
	text := values.Get(key)
	if text == "" {
		return byDefault, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, wrong(key, text, fmt.Errorf("must be a number from 0 to %d", most))
	}
	return n, nil
}
