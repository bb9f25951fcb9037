// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/queryapi/querierpb"
)

const (
	// heatmapBuckets is how many ranges of values a heatmap has, as Pyroscope's.
	heatmapBuckets = 20
	// heatPointSize is the memory of a heatPoint with a slot of its own in the answer, and pairSize that of a label without its text.
	heatPointSize = 600
	pairSize      = 100
)

// heatmap are the values of single profiles, or of spans in them.
type heatmap struct {
	by     []string // sorted
	typeID []string // its parts
	steps  query.Steps
	spans  bool
	utf8   bool
	free   int64 // bytes

	series map[string]*heatSeries
}

type heatSeries struct {
	values []string // of the labels
	points []heatPoint
	sum    float64
}

type heatPoint struct {
	step    int
	at      pcommon.Timestamp
	value   int64
	profile pprofile.ProfileID
	link    heatLink
	labels  []*querierpb.LabelPair // which the points of a resource share
}

type heatLink struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

func (a *api) selectHeatmap(ctx context.Context, r *querierpb.SelectHeatmapRequest) (*querierpb.SelectHeatmapResponse, error) {
	sel, err := selection(r.GetProfileTypeID(), r.GetLabelSelector(), r.GetStart(), r.GetEnd())
	if err != nil {
		return nil, err
	}
	steps, err := stepsOf(r)
	if err != nil {
		return nil, err
	}
	by, err := groupBy("group_by", r.GetGroupBy())
	if err != nil {
		return nil, err
	}
	spans := r.GetQueryType() == querierpb.HeatmapQueryType_HEATMAP_QUERY_TYPE_SPAN
	exemplars := r.GetExemplarType() > querierpb.ExemplarType_EXEMPLAR_TYPE_NONE
	if exemplars && spans != (r.GetExemplarType() == querierpb.ExemplarType_EXEMPLAR_TYPE_SPAN) {
		return nil, invalid("exemplar_type is %v: must be that of query_type, %v, or none", r.GetExemplarType(), r.GetQueryType())
	}
	if steps.To().Before(sel.To) { // the last slot has its right edge after the end
		steps.Count++
	}
	h, err := a.heatmap(ctx, sel, steps, by, spans)
	if err != nil {
		return nil, err
	}
	return h.response(r.GetLimit(), exemplars), nil
}

// heatmap reads the values of the selected profiles, or of their spans.
func (a *api) heatmap(ctx context.Context, sel *query.Selection, steps query.Steps, by *grouping, spans bool) (*heatmap, error) {
	source := a.catalog.Source(&a.missed)
	h := &heatmap{
		by: by.names, typeID: strings.Split(sel.Types[0], ":"), steps: steps, spans: spans, utf8: a.utf8Names,
		free: source.Options.MaxMemory / 4, series: map[string]*heatSeries{},
	}
	return h, source.Each(ctx, sel, h.add)
}

// largest returns an exemplar of the largest value in each step of a series.
func (h *heatmap) largest(group string) map[int]*querierpb.Exemplar {
	exemplars := map[int]*querierpb.Exemplar{}
	if series := h.series[group]; series != nil {
		slices.SortFunc(series.points, compareHeat)
		for i := range series.points {
			exemplars[series.points[i].step] = exemplar(&series.points[i])
		}
	}
	return exemplars
}

// compareHeat sorts points by step and value. Of equal values, the first one comes last.
func compareHeat(a, b heatPoint) int {
	return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.value, b.value), cmp.Compare(b.at, a.at),
		slices.Compare(b.profile[:], a.profile[:]), slices.Compare(b.link.span[:], a.link.span[:]))
}

// add adds the selected part of a payload.
func (h *heatmap) add(record *archive.Record, pd pprofile.Profiles) error {
	pd, err := query.Resolve(record, pd)
	if err != nil {
		return err
	}
	for _, rp := range pd.ResourceProfiles().All() {
		var pairs []*querierpb.LabelPair
		rp.Resource().Attributes().Range(func(key string, value pcommon.Value) bool {
			text, ok := labels.Text(value)
			name := key
			if !h.utf8 {
				name = labels.Name(key)
			}
			if ok && text != "" && !slices.Contains(h.by, key) && !slices.Contains(h.by, labels.Name(key)) {
				pairs = append(pairs, &querierpb.LabelPair{Name: name, Value: text})
				h.free -= pairSize + int64(len(name)+len(text))
			}
			return true
		})
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				values := make([]string, len(h.by))
				for i, name := range h.by {
					values[i] = h.label(name, pd.Dictionary(), rp.Resource().Attributes(), p)
				}
				if err := h.addProfile(pd.Dictionary(), p, values, pairs); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// label returns the label of a profile. Those of its samples may differ, and do not count.
func (h *heatmap) label(name string, dictionary pprofile.ProfilesDictionary, resource pcommon.Map, p pprofile.Profile) string {
	switch name {
	case "__profile_type__":
		return strings.Join(h.typeID, ":")
	case "__name__", "__type__", "__unit__", "__period_type__", "__period_unit__":
		return h.typeID[slices.Index([]string{"__name__", "__type__", "__unit__", "__period_type__", "__period_unit__"}, name)]
	case "__service_name__":
		name = "service_name"
	}
	if attributes, err := pprofile.FromAttributeIndices(dictionary.AttributeTable(), p, dictionary); err == nil {
		if text := labels.Find(attributes, name); text != "" {
			return text
		}
	}
	return labels.Find(resource, name)
}

// addProfile adds a profile, or its spans.
func (h *heatmap) addProfile(dictionary pprofile.ProfilesDictionary, p pprofile.Profile, values []string, pairs []*querierpb.LabelPair) error {
	sums := map[heatLink]int64{}
	for _, sample := range p.Samples().All() {
		var of heatLink
		if h.spans {
			i := int(sample.LinkIndex())
			if i <= 0 || i >= dictionary.LinkTable().Len() {
				continue
			}
			link := dictionary.LinkTable().At(i)
			if of = (heatLink{link.TraceID(), link.SpanID()}); of.span.IsEmpty() {
				continue
			}
		}
		sums[of] = sampletypes.AddSaturated(sums[of], sampletypes.ValueOf(sample))
	}
	if len(sums) == 0 {
		return nil
	}
	key := strings.Join(values, "\x00")
	series := h.series[key]
	if series == nil {
		if len(h.series) == maxSeries {
			return invalid("group_by makes more than %d series: select less", maxSeries)
		}
		series = &heatSeries{values: values}
		h.series[key] = series
		h.free -= int64(groupSize + 2*len(key))
	}
	step := int(time.Duration(int64(p.Time())-h.steps.From.UnixNano()) / h.steps.Length)
	for link, value := range sums {
		series.points = append(series.points, heatPoint{max(0, min(step, h.steps.Count-1)), p.Time(), value, p.ProfileID(), link, pairs})
		series.sum += float64(value)
		h.free -= heatPointSize
	}
	if h.free < 0 {
		return errSeriesSize
	}
	return nil
}

// response counts the values of each series in buckets of equal width from the least value to the largest one of all.
func (h *heatmap) response(limit int64, exemplars bool) *querierpb.SelectHeatmapResponse {
	response := &querierpb.SelectHeatmapResponse{}
	all := make([]*heatSeries, 0, len(h.series))
	least, most, first := 0.0, 0.0, true
	for _, series := range h.series {
		all = append(all, series)
		for _, p := range series.points {
			value := float64(p.value)
			if first {
				least, most, first = value, value, false
			}
			least, most = min(least, value), max(most, value)
		}
	}
	slices.SortFunc(all, func(a, b *heatSeries) int { return slices.Compare(a.values, b.values) })
	if limit > 0 && int64(len(all)) > limit {
		slices.SortStableFunc(all, func(a, b *heatSeries) int { return cmp.Compare(b.sum, a.sum) })
		all = all[:limit]
	}
	width := (most - least) / heatmapBuckets
	if width == 0 {
		width = 1
	}
	bounds := make([]float64, heatmapBuckets)
	for i := range bounds {
		bounds[i] = least + float64(i)*width
	}
	for _, series := range all {
		response.Series = append(response.Series, &querierpb.HeatmapSeries{
			Labels: labelsOf(h.by, series.values), Slots: h.slots(series.points, bounds, width, exemplars),
		})
	}
	return response
}

// slots counts points by step and bucket.
func (h *heatmap) slots(points []heatPoint, bounds []float64, width float64, exemplars bool) (slots []*querierpb.HeatmapSlot) {
	slices.SortFunc(points, compareHeat)
	for len(points) > 0 {
		step := points[0].step
		right := h.steps.From.Add(time.Duration(step+1)*h.steps.Length - 1)
		slot := &querierpb.HeatmapSlot{Timestamp: right.UnixMilli(), YMin: bounds, Counts: make([]int32, len(bounds))}
		best := make([]*heatPoint, len(bounds))
		n := 0
		for ; n < len(points) && points[n].step == step; n++ {
			bucket := min(int((float64(points[n].value)-bounds[0])/width), len(bounds)-1)
			slot.Counts[bucket]++
			best[bucket] = &points[n]
		}
		for _, p := range best {
			if exemplars && p != nil {
				slot.Exemplars = append(slot.Exemplars, exemplar(p))
			}
		}
		slots, points = append(slots, slot), points[n:]
	}
	return slots
}

func exemplar(p *heatPoint) *querierpb.Exemplar {
	e := &querierpb.Exemplar{Timestamp: int64(p.at / 1e6), Value: p.value, Labels: p.labels}
	if digits := hex.EncodeToString(p.profile[:]); !p.profile.IsEmpty() {
		e.ProfileId = digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
	}
	if !p.link.span.IsEmpty() {
		e.SpanId = hex.EncodeToString(p.link.span[:])
	}
	if !p.link.trace.IsEmpty() {
		e.TraceId = hex.EncodeToString(p.link.trace[:])
	}
	return e
}
