// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/extension/profilesviewextension/internal/queryapi/querierpb"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// merge returns the sum of the selected profiles, and the nodes that a flame graph of it may have. The sum is nil if
// nothing is selected.
func (a *api) merge(ctx context.Context, sel *query.Selection) (sum *query.Result, nodes int, err error) {
	source := a.catalog.Source(&a.missed)
	sum, err = source.Merge(ctx, sel, true)
	if errors.Is(err, query.ErrEmpty) {
		if unread := a.unread(); len(unread) > 0 {
			return nil, 0, unread[0]
		}
		return nil, 0, nil
	}
	return sum, int(source.Options.MaxMemory / 4 / nodeSize), err
}

// addTo adds the selected profiles to a side of a tree.
func (a *api) addTo(ctx context.Context, t *tree, side int, sel *query.Selection) error {
	sum, nodes, err := a.merge(ctx, sel)
	if err != nil || sum == nil {
		return err
	}
	t.limit = nodes
	return t.add(sum.Profiles, side)
}

func (a *api) flameGraph(ctx context.Context, sel *query.Selection, nodes int64) (*querierpb.FlameGraph, error) {
	t := newTree()
	if err := a.addTo(ctx, t, left, sel); err != nil {
		return nil, err
	}
	if t.limit == 0 { // nothing is selected
		return &querierpb.FlameGraph{}, nil
	}
	g := t.graph(nodes, 1)
	return &querierpb.FlameGraph{Names: g.names, Levels: g.levels, Total: g.total[left], MaxSelf: g.maxSelf}, nil
}

// selectionOf returns the selection of a request for a flame graph. It rejects formats of Pyroscope's own: 1 is a flame graph, as 0.
func selectionOf(r flameGraphRequest) (*query.Selection, error) {
	if format := r.GetFormat(); format > 1 || format < 0 {
		return nil, invalid("format is %d: must be 0 or 1, a flame graph", format)
	}
	return selection(r.GetProfileTypeID(), r.GetLabelSelector(), r.GetStart(), r.GetEnd())
}

type flameGraphRequest interface {
	GetFormat() int32
	GetProfileTypeID() string
	GetLabelSelector() string
	GetStart() int64
	GetEnd() int64
}

func (a *api) selectMergeStacktraces(ctx context.Context, r *querierpb.SelectMergeStacktracesRequest) (*querierpb.SelectMergeStacktracesResponse, error) {
	sel, err := selectionOf(r)
	if err != nil {
		return nil, err
	}
	g, err := a.flameGraph(ctx, sel, r.GetMaxNodes())
	return &querierpb.SelectMergeStacktracesResponse{Flamegraph: g}, err
}

func (a *api) selectMergeSpanProfile(ctx context.Context, r *querierpb.SelectMergeSpanProfileRequest) (*querierpb.SelectMergeSpanProfileResponse, error) {
	sel, err := selectionOf(r)
	if err != nil {
		return nil, err
	}
	if len(r.GetSpanSelector()) == 0 {
		return nil, invalid("span_selector is empty: must be the IDs of spans")
	}
	for _, text := range r.GetSpanSelector() {
		var id pcommon.SpanID
		decoded, err := hex.DecodeString(text)
		if err != nil || len(decoded) != len(id) {
			return nil, invalid("span_selector has %.60q: must be 16 hex digits", text)
		}
		copy(id[:], decoded)
		sel.SpanIDs = append(sel.SpanIDs, id)
	}
	g, err := a.flameGraph(ctx, sel, r.GetMaxNodes())
	return &querierpb.SelectMergeSpanProfileResponse{Flamegraph: g}, err
}

func (a *api) diff(ctx context.Context, r *querierpb.DiffRequest) (*querierpb.DiffResponse, error) {
	t := newTree()
	for side, of := range []*querierpb.SelectMergeStacktracesRequest{r.GetLeft(), r.GetRight()} {
		sel, err := selectionOf(of)
		if err != nil {
			return nil, err
		}
		if err := a.addTo(ctx, t, side, sel); err != nil {
			return nil, err
		}
	}
	g := t.graph(max(r.GetLeft().GetMaxNodes(), r.GetRight().GetMaxNodes()), 2)
	return &querierpb.DiffResponse{Flamegraph: &querierpb.FlameGraphDiff{
		Names: g.names, Levels: g.levels, Total: g.total[left] + g.total[right], MaxSelf: g.maxSelf, LeftTicks: g.total[left], RightTicks: g.total[right],
	}}, nil
}

// selectMergeProfile returns a pprof of all nodes.
func (a *api) selectMergeProfile(ctx context.Context, r *querierpb.SelectMergeProfileRequest) (*querierpb.Profile, error) {
	sel, err := selection(r.GetProfileTypeID(), r.GetLabelSelector(), r.GetStart(), r.GetEnd())
	if err != nil {
		return nil, err
	}
	sum, nodes, err := a.merge(ctx, sel)
	if err != nil || sum == nil {
		return &querierpb.Profile{}, err
	}
	uniteTypes(sum.Profiles)
	merged, err := sum.Pprof(ctx)
	if err == nil && r.GetMaxNodes() > 0 {
		merged, err = fold(merged, int(r.GetMaxNodes()), nodes)
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
			sp.Scope().Attributes().PutStr(sampletypes.ProfileTypeAttribute, "")
		}
	}
}
