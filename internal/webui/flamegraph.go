// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"slices"

	"github.com/google/pprof/profile"
)

//go:embed flamegraph.html
var flamegraphText string

//go:embed flamegraph.css
var flamegraphStyle string

//go:embed flamegraph.js
var flamegraphScript string

var flamegraphPage = template.Must(template.New("").Parse(flamegraphText))

var flamegraphPolicy = pagePolicy(flamegraphStyle, flamegraphScript)

const (
	// maxNodes bounds the boxes of a flame graph. Each is about 20 bytes of the page.
	maxNodes = 200_000
	// topFunctions is how many functions the table of the page has. The script finds others.
	topFunctions = 50
	// fewSamples is below how many samples, in the selection and the base together, a change may be chance.
	fewSamples = 20
	// fewPart is the part of the total below which it may be, if the value of a sample is not known.
	fewPart = 0.001
)

// drawing is what the script draws. Its slices of numbers have one for each node or frame, and those of sides have one
// slice of these for the selection and in a difference one for the base.
type drawing struct {
	Scales []scale   `json:"scales"`
	Names  []string  `json:"names"`
	Places []string  `json:"places"` // file and line of frames
	Frames []int32   `json:"frames"`
	Parent []int32   `json:"parents"`
	Self   [][]int64 `json:"self"`

	FunctionSelf  [][]int64 `json:"functionSelf"`
	FunctionTotal [][]int64 `json:"functionTotal"`

	// Few is the value, of both sides together, below which a change is grey.
	Few float64 `json:"few"`
}

func newDrawing(t *stacks, scales []scale, few float64, difference bool) *drawing {
	d := &drawing{Scales: scales, Few: few}
	for _, f := range t.Frames {
		d.Names, d.Places = append(d.Names, f.Name), append(d.Places, f.place())
	}
	for _, n := range t.Nodes {
		d.Frames, d.Parent = append(d.Frames, n.Frame), append(d.Parent, n.Parent)
	}
	sides := 1
	if difference {
		sides = 2
	}
	for side := range sides {
		self := make([]int64, len(t.Nodes))
		for i, n := range t.Nodes {
			self[i] = n.Self[side]
		}
		functionSelf, functionTotal := make([]int64, len(t.Frames)), make([]int64, len(t.Frames))
		for i, f := range t.functions {
			functionSelf[i], functionTotal[i] = f.self[side], f.total[side]
		}
		d.Self, d.FunctionSelf, d.FunctionTotal = append(d.Self, self), append(d.FunctionSelf, functionSelf), append(d.FunctionTotal, functionTotal)
	}
	return d
}

// tableRow is a function in the table of the page.
type tableRow struct{ Name, Place, Self, SelfShare, Total, TotalShare, Before, After, Change, Relative string }

// flamegraph returns the page of the flame graph of p.
func flamegraph(p *profile.Profile, options Options) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		shown, index, err := filtered(p, r.URL.Query())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		page, err := flamegraphOf(r.Context(), shown, index, r.URL.Query(), options)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", flamegraphPolicy)
		// #nosec G705 -- html/template and Marshal have escaped it
		_, _ = w.Write(page) // an error is that of the client's connection
	}
}

func flamegraphOf(ctx context.Context, p *profile.Profile, index int, query url.Values, options Options) ([]byte, error) {
	t, err := newStacks(ctx, p, index)
	if err != nil {
		return nil, err
	}
	sampleType, total := p.SampleType[index], t.functions[Root].total
	difference := total[1] > 0 || slices.ContainsFunc(p.Sample, (*profile.Sample).DiffBaseSample)
	scales := scalesOf(sampleType.Unit)
	table := t.table(scales, difference)
	t.Fold(maxNodes-1, "(other)")
	few := fewPart * float64(max(total[0], total[1]))
	if value := valueOfSample(p, sampleType); value > 0 {
		few = fewSamples * float64(value)
	}
	data, err := json.Marshal(newDrawing(t, scales, few, difference))
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	err = flamegraphPage.Execute(&page, map[string]any{
		"Title": cmp.Or(options.Title, sampleType.Type), "Banner": options.Banner,
		"Views": views(), "Query": template.URL(query.Encode()), // #nosec G203 -- Encode escapes keys and values
		"SampleTypes": p.SampleType, "SampleType": sampleType.Type, "Filters": filtersOf(query),
		"Total": totalRow(total, total, scales), "Difference": difference, "Few": quantity(few, scales), "Table": table,
		"Style":  template.CSS(flamegraphStyle), // #nosec G203 -- it is ours
		"Data":   template.JS(data),             // #nosec G203 -- Marshal escapes what ends a script
		"Script": template.JS(flamegraphScript), // #nosec G203 -- it is ours
	})
	return page.Bytes(), err
}

// views are the other pages. That of the graph is hidden without Graphviz.
func views() []string {
	if hasGraphviz() {
		return []string{"top", "peek", "graph"}
	}
	return []string{"top", "peek"}
}

// valueOfSample returns the value of one sample, 0 if it is not known.
func valueOfSample(p *profile.Profile, t *profile.ValueType) int64 {
	switch {
	case t.Type == "samples":
		return 1
	case p.PeriodType != nil && p.PeriodType.Unit == t.Unit:
		return p.Period
	}
	return 0
}

// table returns the functions with the largest values of their own, or with the largest changes.
func (t *stacks) table(scales []scale, difference bool) (rows []tableRow) {
	order := make([]int, 0, len(t.functions))
	for i := 1; i < len(t.functions); i++ {
		order = append(order, i)
	}
	key := func(i int) float64 {
		if total := t.functions[i].total; difference {
			return math.Abs(float64(total[0]) - float64(total[1]))
		}
		return t.functions[i].self.weight()
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(key(b), key(a)) })
	all := t.functions[Root].total
	for _, i := range order[:min(len(order), topFunctions)] {
		row := totalRow(t.functions[i].total, all, scales)
		row.Name, row.Place = t.Frames[i].Name, t.Frames[i].place()
		self := t.functions[i].self.weight()
		row.Self, row.SelfShare = quantity(self, scales), percentage(self, all.weight())
		rows = append(rows, row)
	}
	return rows
}

// totalRow writes the total of a function.
func totalRow(total, all Sides, scales []scale) tableRow {
	change := float64(total[0]) - float64(total[1])
	row := tableRow{
		Total: quantity(total.weight(), scales), TotalShare: percentage(total.weight(), all.weight()),
		Before: quantity(float64(total[1]), scales), After: quantity(float64(total[0]), scales),
		Change: quantity(change, scales), Relative: "new",
	}
	if change > 0 {
		row.Change = "+" + row.Change
	}
	if total[1] > 0 {
		row.Relative = percentage(change, float64(total[1]))
	}
	return row
}

// filter is a parameter of pprof's menu Refine.
type filter struct{ Key, Name, Value string }

func filtersOf(query url.Values) (filters []filter) {
	for _, f := range []filter{{Key: "f", Name: "Focus"}, {Key: "i", Name: "Ignore"}, {Key: "h", Name: "Hide"}, {Key: "s", Name: "Show"}, {Key: "sf", Name: "Show from"}} {
		f.Value = query.Get(f.Key)
		filters = append(filters, f)
	}
	return filters
}
