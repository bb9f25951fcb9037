// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query/timeline"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/catalog"
)

// The parameters of the timeline. All of its requests select profiles as the other pages do.
var (
	selectingTimed = slices.Concat(selectingTotals, selectingSamples)

	ofTimeline = slices.Concat(selectingTimed, []string{"cells", "compare"})
	ofHeatmap  = selectingTimed
	ofLanes    = slices.Concat(selectingTimed, []string{"by", "q", "lane", "first", "count", "slots"})
)

// timedType is a sample type with timestamps in a range.
type timedType struct {
	contents.Key

	ID      string // query.TypeID
	Samples int
	// Start and End are those of what has timestamps, also outside of the range. End is 0 if nothing has.
	Start, End uint64
}

// name names the type for people.
func (t *timedType) name() string {
	if t.Type == "" || t.Type == t.SampleType {
		return t.SampleType
	}
	return t.Type + ":" + t.SampleType
}

// isOnCPU reports whether the samples are of what runs on a CPU.
func (t *timedType) isOnCPU() bool {
	return t.SampleType == "cpu" || sampletypes.CountsSamples(t.SampleType) && t.PeriodType != "wall"
}

// timelinePage is the content of the template timeline.
type timelinePage struct {
	*params

	Title    string
	Bar      *bar
	Type     *timedType // that of the heatmap, nil without timestamps
	Types    []link
	Untimed  []string          // sample types of the range without timestamps
	Graph    *webui.FlameGraph // of the selected cells, nil without any
	Chosen   []string          // what the graph is of
	Errors   []string
	From, To string // in nanoseconds since the epoch: more than a number of JSON holds
}

func (p *Page) timeline(w http.ResponseWriter, r *http.Request) error {
	params, err := parseParams(r.URL.Query(), defaultRange, p.now())
	if err != nil {
		return err
	}
	timed, untimed, missed, err := p.timedTypes(r.Context(), params.selected)
	if err != nil {
		return err
	}
	found, err := p.offer(r.Context(), params)
	if err != nil {
		return err
	}
	if !params.values.Has("from") && !params.values.Has("to") {
		params.narrowTo(timed)
	}
	from, to := rangeOf(params.selected)
	t := &timelinePage{
		params: params, Title: "Timeline", Bar: params.bar(viewTimeline, found), Untimed: untimed, Errors: missed.Notes(),
		From: strconv.FormatUint(from, 10), To: strconv.FormatUint(to, 10),
	}
	for i, of := range timed {
		if i == 0 {
			t.Type = of
		}
		t.Types = append(t.Types, link{Text: of.name(), Query: params.with(map[string]string{"type": of.ID}), Current: i == 0})
	}
	if text := r.URL.Query().Get("cells"); text != "" && t.Type != nil {
		if err := t.addGraph(r.Context(), p, text, r.URL.Query().Get("compare")); err != nil {
			return err
		}
	}
	writePage(w, http.StatusOK, "timeline", t)
	return nil
}

// leastRange is the shortest range, in nanoseconds: a single sample may be at its end.
const leastRange = 1e6

// narrowTo makes the range that of what has timestamps in it, if that is less than half of it: a trace of two seconds would be a column of the
// heatmap. The URL still states no range, so that another service has its own.
func (p *params) narrowTo(timed []*timedType) {
	if len(timed) == 0 {
		return
	}
	start, end := timed[0].Start, timed[0].End
	for _, t := range timed {
		start, end = min(start, t.Start), max(end, t.End)
	}
	from, to := rangeOf(p.selected)
	start, end = max(min(start, end-min(end, leastRange)), from), min(end, to)
	if end-start < (to-from)/2 {
		p.selected.From, p.selected.To, p.byDefault = query.TimeOf(start), query.TimeOf(end), 0
	}
}

// compareRest is the value of the parameter compare: the selected cells are compared with the others.
const compareRest = "rest"

// addGraph adds the flame graph of the samples in cells.
func (t *timelinePage) addGraph(ctx context.Context, p *Page, text, compare string) error {
	if compare != "" && compare != compareRest {
		return wrong("compare", compare, fmt.Errorf("must be %s", compareRest))
	}
	from, to := rangeOf(t.selected)
	grid := timeline.NewGrid(from, to)
	cells, err := grid.ParseCells(text)
	if err != nil {
		return wrong("cells", text, err)
	}
	sel := *t.selected
	sel.Types = []string{t.Type.ID}
	stacks := timeline.NewStacks(grid, cells, p.options().MaxMemory/lanesShare)
	notes, err := p.eachTimed(ctx, (*query.Source).Each, &sel, stacks.Add)
	if err != nil {
		return err
	}
	if sampletypes.Saturated(stacks.Sums[0]) || sampletypes.Saturated(stacks.Sums[1]) {
		return errors.New("a sum does not fit into 64 bits: select less, by service, type or time")
	}
	t.Errors = notes
	profiled := stacks.Time()
	t.Chosen = []string{t.words(stacks, 0, profiled) + " in the selected cells"}
	scale := 0.0
	if compare == compareRest && profiled[1] > 0 {
		scale = float64(profiled[0]) / float64(profiled[1])
		t.Chosen = append(t.Chosen, t.words(stacks, 1, profiled)+" in the rest, which is the base: as much of it as in the time of the selected cells")
	}
	for i := range stacks.Nodes {
		self := &stacks.Nodes[i].Self
		self[1] = int64(math.Round(float64(self[1]) * scale))
	}
	one := int64(0)
	if sampletypes.CountsSamples(t.Type.SampleType) {
		one = 1
	}
	t.Graph, err = webui.FlameGraphOf(stacks.Tree, t.Type.Unit, one, scale > 0)
	return err
}

// words writes how many samples a side has, and in how much profiled time.
func (t *timelinePage) words(s *timeline.Stacks, side int, profiled [2]uint64) string {
	text := webui.Count(int(s.Counts[side]), "sample")
	if !sampletypes.CountsSamples(t.Type.SampleType) {
		text += " (" + webui.Quantity(t.Type.Unit, float64(s.Sums[side])) + ")"
	}
	return text + " of " + nanoseconds(float64(profiled[side]))
}

// rangeOf returns the range of a selection in nanoseconds since the epoch, at least one.
func rangeOf(sel *query.Selection) (from, to uint64) {
	from, to = uint64(max(0, sel.From.UnixNano())), uint64(max(0, sel.To.UnixNano()))
	return from, max(to, from+1)
}

// timedTypes returns the sample types of the selection with timestamps, those of a CPU first and then those with most samples, and the names of
// those without.
func (p *Page) timedTypes(ctx context.Context, sel *query.Selection) (timed []*timedType, untimed []string, missed *catalog.Missing, err error) {
	missed = &catalog.Missing{}
	from, to := rangeOf(sel)
	byID := map[string]*timedType{}
	selects := func(k *contents.Key) bool { return sel.MatchesKey(ctx, k) }
	err = p.catalog.Scan(ctx, sel, nil, selects, missed, func(of *query.Times, in *contents.Total) error {
		if of.IsWhole || of.Start >= to || of.End < from || !selects(&of.Key) { // an interval may last into the range
			return nil
		}
		id := query.TypeID(&of.Key)
		t := byID[id]
		if t == nil {
			t = &timedType{Key: of.Key, ID: id}
			byID[id] = t
		}
		if in != nil {
			t.Samples += in.Samples
		}
		if of.Timestamps {
			if t.End == 0 {
				t.Start = of.Start
			}
			t.Start, t.End = min(t.Start, of.Start), max(t.End, of.End, of.Latest+1)
		}
		return nil
	})
	for _, t := range byID {
		if t.End > 0 {
			timed = append(timed, t)
		} else {
			untimed = append(untimed, t.name())
		}
	}
	slices.SortFunc(timed, func(a, b *timedType) int {
		switch {
		case a.isOnCPU() && !b.isOnCPU():
			return -1
		case b.isOnCPU() && !a.isOnCPU():
			return 1
		}
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.ID, b.ID))
	})
	slices.Sort(untimed)
	return timed, slices.Compact(untimed), missed, err
}

// heatmapResponse is the response of /api/timeline/heatmap.
type heatmapResponse struct {
	// From is where the first column starts, and Column the length of one, in nanoseconds.
	From    string `json:"from"`
	Column  uint64 `json:"column"`
	Columns int    `json:"columns"`
	Rows    int    `json:"rows"`

	// Type is "" if no sample type of the selection has timestamps in the range.
	Type string `json:"type"`
	Unit string `json:"unit"`
	// Cells are three numbers for each cell with samples: its number, how many samples, and the sum of their values. Cells are numbered from the first
	// row of the first column on, a column after the other.
	Cells []int64 `json:"cells"`
	// Untimed is the number of samples without timestamps.
	Untimed int      `json:"untimed"`
	Notes   []string `json:"notes,omitempty"`
}

// apiHeatmap answers with the samples of one sample type: of several that are selected, the first one of timedTypes.
func (p *Page) apiHeatmap(w http.ResponseWriter, r *http.Request) error {
	params, err := parseParams(r.URL.Query(), defaultRange, p.now())
	if err != nil {
		return err
	}
	timed, _, missed, err := p.timedTypes(r.Context(), params.selected)
	if err != nil {
		return err
	}
	from, to := rangeOf(params.selected)
	h := timeline.NewHeatmap(timeline.NewGrid(from, to))
	answer := &heatmapResponse{
		From: strconv.FormatUint(h.From, 10), Column: h.Column, Columns: h.Columns, Rows: h.Rows, Cells: []int64{}, Notes: missed.Notes(),
	}
	if len(timed) > 0 {
		answer.Type, answer.Unit = timed[0].name(), timed[0].Unit
		sel := *params.selected
		sel.Types = []string{timed[0].ID}
		if answer.Notes, err = p.eachTimed(r.Context(), (*query.Source).Each, &sel, h.Add); err != nil {
			return err
		}
	}
	answer.Untimed = h.Untimed
	for i, n := range h.Counts {
		if n > 0 {
			answer.Cells = append(answer.Cells, int64(i), n, h.Values[i])
		}
	}
	return writeJSON(w, answer)
}

// eachReader is a method of a Source.
type eachReader func(*query.Source, context.Context, *query.Selection, func(*archive.Record, pprofile.Profiles) error) error

// eachTimed calls add with each payload that each reads, resolved, and returns what could not be read.
func (p *Page) eachTimed(ctx context.Context, each eachReader, sel *query.Selection, add func(context.Context, pprofile.Profiles) error) (notes []string, err error) {
	var missed catalog.Missing
	err = each(p.catalog.Source(&missed), ctx, sel, func(record *archive.Record, pd pprofile.Profiles) error {
		resolved, err := query.Resolve(record, pd)
		if err != nil {
			return err
		}
		return add(ctx, resolved)
	})
	return missed.Notes(), err
}

func writeJSON(w http.ResponseWriter, content any) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	return json.NewEncoder(w).Encode(content)
}

// Explore returns the query of the page on which a selection is made.
func (t *timelinePage) Explore() template.URL { return t.with(nil) }
