// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/queryapi/querierpb"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// merge returns the sum of the selected profiles, of snapshots those of living processes, and the nodes that a flame graph of it may have. The
// sum is nil if nothing is selected.
func (a *api) merge(ctx context.Context, sel *query.Selection) (sum *query.Result, nodes int, err error) {
	source := a.catalog.Source(&a.missed)
	sum, err = source.MergeTimed(ctx, sel)
	if errors.Is(err, query.ErrEmpty) {
		if unread := a.unread(); len(unread) > 0 {
			return nil, 0, unread[0]
		}
		return nil, 0, nil
	}
	return sum, int(source.Options.MaxMemory / 4 / nodeSize), err
}

// addTo adds the selected profiles to a side of a tree, and returns them, nil if nothing is selected.
func (a *api) addTo(ctx context.Context, t *tree, side int, sel *query.Selection) (*query.Result, error) {
	sum, nodes, err := a.merge(ctx, sel)
	if err != nil || sum == nil {
		return nil, err
	}
	t.limit = nodes
	return sum, t.add(sum.Profiles, side)
}

// treeOf returns the tree of the selected profiles, nil if nothing is selected.
func (a *api) treeOf(ctx context.Context, sel *query.Selection) (*tree, error) {
	t := newTree()
	if _, err := a.addTo(ctx, t, left, sel); err != nil || t.limit == 0 {
		return nil, err
	}
	return t, nil
}

func (a *api) flameGraph(ctx context.Context, sel *query.Selection, nodes int64) (*querierpb.FlameGraph, error) {
	t, err := a.treeOf(ctx, sel)
	if err != nil || t == nil {
		return &querierpb.FlameGraph{}, err
	}
	g := t.graph(nodes, 1)
	return &querierpb.FlameGraph{Names: g.names, Levels: g.levels, Total: g.total[left], MaxSelf: g.maxSelf}, nil
}

// encodedTree returns the nodes of a tree as bytes, none if nothing is selected.
func (a *api) encodedTree(ctx context.Context, sel *query.Selection, nodes int64) ([]byte, error) {
	t, err := a.treeOf(ctx, sel)
	if err != nil || t == nil {
		return nil, err
	}
	return t.encode(nodes), nil
}

func (a *api) selectMergeStacktraces(ctx context.Context, r *querierpb.SelectMergeStacktracesRequest) (response *querierpb.SelectMergeStacktracesResponse, err error) {
	sel, err := selection(r.GetProfileTypeID(), r.GetLabelSelector(), r.GetStart(), r.GetEnd())
	if err != nil {
		return nil, err
	}
	if err := addSelectors(sel, r); err != nil {
		return nil, err
	}
	if err := addSpans(sel, r.GetSpanSelector()); err != nil {
		return nil, err
	}
	response = &querierpb.SelectMergeStacktracesResponse{}
	switch r.GetFormat() {
	case querierpb.ProfileFormat_PROFILE_FORMAT_UNSPECIFIED, querierpb.ProfileFormat_PROFILE_FORMAT_FLAMEGRAPH:
		response.Flamegraph, err = a.flameGraph(ctx, sel, r.GetMaxNodes())
	case querierpb.ProfileFormat_PROFILE_FORMAT_TREE:
		response.Tree, err = a.encodedTree(ctx, sel, r.GetMaxNodes())
	case querierpb.ProfileFormat_PROFILE_FORMAT_DOT:
		response.Dot, err = a.dot(ctx, sel, r.GetMaxNodes())
	case querierpb.ProfileFormat_PROFILE_FORMAT_PPROF:
		response.Pprof = &querierpb.PprofProfile{}
		response.Pprof.Profile, err = a.pprof(ctx, sel, r.GetMaxNodes())
	default:
		return nil, invalid("format is %d: must be a flame graph (0, 1), a tree (2), dot (3) or pprof (4)", r.GetFormat())
	}
	if async := r.GetAsync(); async.GetType() == querierpb.AsyncQueryType_ASYNC_QUERY_TYPE_FORCE || async.GetRequestId() != "" {
		response.Async = &querierpb.AsyncQueryResponse{RequestId: async.GetRequestId(), Status: querierpb.AsyncQueryStatus_ASYNC_QUERY_STATUS_SUCCESS}
	}
	return response, err
}

func (a *api) selectMergeSpanProfile(ctx context.Context, r *querierpb.SelectMergeSpanProfileRequest) (response *querierpb.SelectMergeSpanProfileResponse, err error) {
	sel, err := selection(r.GetProfileTypeID(), r.GetLabelSelector(), r.GetStart(), r.GetEnd())
	if err != nil {
		return nil, err
	}
	if len(r.GetSpanSelector()) == 0 {
		return nil, invalid("span_selector is empty: must be the IDs of spans")
	}
	if err := addSpans(sel, r.GetSpanSelector()); err != nil {
		return nil, err
	}
	response = &querierpb.SelectMergeSpanProfileResponse{}
	switch r.GetFormat() {
	case querierpb.ProfileFormat_PROFILE_FORMAT_UNSPECIFIED, querierpb.ProfileFormat_PROFILE_FORMAT_FLAMEGRAPH:
		response.Flamegraph, err = a.flameGraph(ctx, sel, r.GetMaxNodes())
	case querierpb.ProfileFormat_PROFILE_FORMAT_TREE:
		response.Tree, err = a.encodedTree(ctx, sel, r.GetMaxNodes())
	default:
		return nil, invalid("format is %d: must be a flame graph (0, 1) or a tree (2)", r.GetFormat())
	}
	return response, err
}

func (a *api) diff(ctx context.Context, r *querierpb.DiffRequest) (*querierpb.DiffResponse, error) {
	t := newTree()
	var sides [2]*query.Side
	for side, of := range []*querierpb.SelectMergeStacktracesRequest{r.GetLeft(), r.GetRight()} {
		sel, err := selection(of.GetProfileTypeID(), of.GetLabelSelector(), of.GetStart(), of.GetEnd())
		if err != nil {
			return nil, err
		}
		if err := cmp.Or(addSelectors(sel, of), addSpans(sel, of.GetSpanSelector())); err != nil {
			return nil, err
		}
		sum, err := a.addTo(ctx, t, side, sel)
		if err != nil {
			return nil, err
		}
		if sum != nil {
			sides[side] = &query.Side{Selection: sel, Result: sum}
		}
	}
	if sides[left] != nil && sides[right] != nil { // so that the sides differ as their rates do
		totals := t.Totals()[webui.Root]
		compared := query.CompareTotals(sides[right], sides[left], float64(totals[right]), float64(totals[left]))
		if err := t.multiply(left, compared.Factor()); err != nil {
			return nil, err
		}
	}
	g := t.graph(max(r.GetLeft().GetMaxNodes(), r.GetRight().GetMaxNodes()), 2)
	return &querierpb.DiffResponse{Flamegraph: &querierpb.FlameGraphDiff{
		Names: g.names, Levels: g.levels, Total: g.total[left] + g.total[right], MaxSelf: g.maxSelf, LeftTicks: g.total[left], RightTicks: g.total[right],
	}}, nil
}

func (a *api) selectMergeProfile(ctx context.Context, r *querierpb.SelectMergeProfileRequest) (*querierpb.Profile, error) {
	sel, err := selection(r.GetProfileTypeID(), r.GetLabelSelector(), r.GetStart(), r.GetEnd())
	if err != nil {
		return nil, err
	}
	if err := addSelectors(sel, r); err != nil {
		return nil, err
	}
	return a.pprof(ctx, sel, r.GetMaxNodes())
}

// pprof returns a pprof of the largest nodes, or of all. It is empty if nothing is selected.
func (a *api) pprof(ctx context.Context, sel *query.Selection, largest int64) (*querierpb.Profile, error) {
	sum, nodes, err := a.merge(ctx, sel)
	if err != nil || sum == nil {
		return &querierpb.Profile{}, err
	}
	uniteTypes(sum.Profiles)
	merged, err := sum.Pprof(ctx)
	if err == nil && largest > 0 {
		merged, err = fold(merged, int(min(largest, math.MaxInt32)), nodes)
	}
	if err != nil {
		return nil, err
	}
	webui.NameFunctions(merged)
	var encoded bytes.Buffer
	if err := pproftranslator.WritePprof(&encoded, merged); err != nil {
		return nil, err
	}
	response := &querierpb.Profile{}
	return response, proto.Unmarshal(encoded.Bytes(), response)
}

// fold keeps the n largest nodes of the call tree of a profile with one sample type. The frames of a stack below them become
// one, with the name other. The tree may have at most limit nodes.
func fold(p *profile.Profile, n, limit int) (*profile.Profile, error) {
	t, stack := newTree(), []int32(nil)
	t.limit = limit
	for _, s := range p.Sample {
		stack = stack[:0]
		for _, l := range s.Location {
			stack = append(stack, int32(l.ID)) // #nosec G115 -- the number of the location
		}
		if err := t.addStack(stack, s.Value[0], left); err != nil {
			return nil, err
		}
	}
	folded := &profile.Function{ID: uint64(len(p.Function) + 1), Name: other}
	location := &profile.Location{ID: uint64(len(p.Location) + 1), Line: []profile.Line{{Function: folded}}}
	large := t.Largest(n)
	for _, s := range p.Sample {
		at := int32(webui.Root)
		for i, l := range slices.Backward(s.Location) {
			if at = t.Child(at, int32(l.ID)); !large[at] { // #nosec G115 -- as above
				s.Location = append([]*profile.Location{location}, s.Location[i+1:]...)
				break
			}
		}
	}
	p.Function, p.Location = append(p.Function, folded), append(p.Location, location)
	return profile.Merge([]*profile.Profile{p}) // adds up samples that have become equal, and leaves out what has become unused
}

// uniteTypes gives all scopes one profile type: several may have the same profile type ID, such as heap and allocs.
func uniteTypes(pd pprofile.Profiles) {
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			sp.Scope().Attributes().PutStr(attrkey.ProfileType, "")
		}
	}
}
