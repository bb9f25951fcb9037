// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// EachSummary calls visit with the summaries of the selected part of each payload, and their values of the labels by, none of
// which is a KeyLabel.
func (s *Source) EachSummary(ctx context.Context, sel *Selection, by []string, visit func(values []string, of *recordfile.Summary) error) error {
	return s.eachGroup(ctx, sel, by, func(record *archive.Record, values []string, pd pprofile.Profiles) error {
		return eachSummary(record, pd, func(of *recordfile.Summary) error { return visit(values, of) })
	})
}

// eachSummary calls visit with the summaries of a part of a record.
func eachSummary(record *archive.Record, pd pprofile.Profiles, visit func(*recordfile.Summary) error) error {
	summaries, err := recordfile.Summarize(pd)
	if err != nil {
		return record.Fail(err)
	}
	for i := range summaries {
		if err := visit(&summaries[i]); err != nil {
			return err
		}
	}
	return nil
}

// eachGroup is Each with the parts of a payload that differ in the labels by.
func (s *Source) eachGroup(ctx context.Context, sel *Selection, by []string, visit func(*archive.Record, []string, pprofile.Profiles) error) error {
	return s.Each(ctx, sel, func(record *archive.Record, pd pprofile.Profiles) error {
		if len(by) == 0 {
			return visit(record, nil, pd)
		}
		pd, err := Resolve(record, pd)
		if err != nil {
			return err
		}
		return split(pd, by, func(values []string, pd pprofile.Profiles) error { return visit(record, values, pd) })
	})
}

// group is the part of a payload with some values.
type group struct {
	values []string
	parts  pprofile.ResourceProfilesSlice
}

// split calls visit with the groups of pd, one after the other, in the order of their values.
func split(pd pprofile.Profiles, by []string, visit func([]string, pprofile.Profiles) error) error {
	groups := map[string]*group{}
	for _, rp := range pd.ResourceProfiles().All() {
		splitResource(pd, rp, by, func(values []string) pprofile.ResourceProfilesSlice {
			key := strings.Join(values, "\x00")
			if groups[key] == nil {
				groups[key] = &group{values, pprofile.NewResourceProfilesSlice()}
			}
			return groups[key].parts
		})
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		pd.ResourceProfiles().RemoveIf(func(pprofile.ResourceProfiles) bool { return true })
		groups[key].parts.MoveAndAppendTo(pd.ResourceProfiles())
		if err := visit(groups[key].values, pd); err != nil {
			return err
		}
	}
	return nil
}

// splitResource adds the parts of a resource to the slices that of returns for their values.
func splitResource(pd pprofile.Profiles, rp pprofile.ResourceProfiles, by []string, of func([]string) pprofile.ResourceProfilesSlice) {
	inherited, ofSamples := make([]string, len(by)), make([][]string, len(by))
	anyOfSamples := false
	for i, name := range by {
		inherited[i] = labels.Find(rp.Resource().Attributes(), name)
		for k, a := range pd.Dictionary().AttributeTable().All() {
			text, ok := labels.Text(a.Value())
			if k == 0 || !ok || !labels.Is(dictionary.ValidString(pd.Dictionary().StringTable(), a.KeyStrindex()), name) {
				continue
			}
			if ofSamples[i] == nil {
				ofSamples[i], anyOfSamples = make([]string, pd.Dictionary().AttributeTable().Len()), true
			}
			ofSamples[i][k] = "\x00" + text // so that "" differs from none
		}
	}
	if !anyOfSamples {
		rp.MoveTo(of(inherited).AppendEmpty())
		return
	}
	parts := map[string]pprofile.ResourceProfiles{}
	for j, sp := range rp.ScopeProfiles().All() {
		for k, p := range sp.Profiles().All() {
			for _, sample := range p.Samples().All() {
				values := slices.Clone(inherited)
				for i := range by {
					values[i] = valueOf(ofSamples[i], inherited[i], sample.AttributeIndices(), p.AttributeIndices())
				}
				key := strings.Join(values, "\x00")
				part, known := parts[key]
				if !known {
					part = of(values).AppendEmpty()
					parts[key] = part
					copyWithoutSamples(rp, part)
				}
				sample.MoveTo(part.ScopeProfiles().At(j).Profiles().At(k).Samples().AppendEmpty())
			}
		}
	}
	for _, part := range parts {
		part.ScopeProfiles().RemoveIf(func(sp pprofile.ScopeProfiles) bool {
			sp.Profiles().RemoveIf(func(p pprofile.Profile) bool { return p.Samples().Len() == 0 })
			return sp.Profiles().Len() == 0
		})
	}
}

// valueOf returns the value of a label of a sample: that of the first attribute that has one.
func valueOf(ofSamples []string, inherited string, indices ...pcommon.Int32Slice) string {
	for _, of := range indices {
		for _, i := range of.All() {
			if i > 0 && int(i) < len(ofSamples) && ofSamples[i] != "" {
				return ofSamples[i][1:]
			}
		}
	}
	return inherited
}

// copyWithoutSamples copies rp but its samples, which stay.
func copyWithoutSamples(rp, to pprofile.ResourceProfiles) {
	rp.Resource().CopyTo(to.Resource())
	to.SetSchemaUrl(rp.SchemaUrl())
	for _, sp := range rp.ScopeProfiles().All() {
		scope := to.ScopeProfiles().AppendEmpty()
		sp.Scope().CopyTo(scope.Scope())
		scope.SetSchemaUrl(sp.SchemaUrl())
		for _, p := range sp.Profiles().All() {
			own := scope.Profiles().AppendEmpty()
			samples := pprofile.NewSampleSlice()
			p.Samples().MoveAndAppendTo(samples)
			p.CopyTo(own)
			samples.MoveAndAppendTo(p.Samples())
		}
	}
}

// Labels returns the attributes of the selected profiles. It takes them from the index of a file if that answers the same as
// the file. They take at most a quarter of the memory limit.
func (s *Source) Labels(ctx context.Context, sel *Selection) (*labels.Set, error) {
	found := labels.NewSet(s.Options.MaxMemory / windowShare)
	err := s.eachIndexed(ctx, sel, func(x *recordfile.Index) (bool, error) {
		selected, ok := sel.selectedOf(x.Totals)
		if !ok || len(selected) < len(x.Totals) || !x.Labels.IsComplete() { // its labels are those of all profiles
			return false, nil
		}
		found.Merge(&x.Labels)
		return true, nil
	}, func(files *Source) error {
		return files.Each(ctx, sel, func(record *archive.Record, pd pprofile.Profiles) error {
			pd, err := Resolve(record, pd)
			if err == nil {
				found.AddProfiles(pd)
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	if _, complete := found.Names(); !complete {
		return nil, fmt.Errorf("the labels take more than %d MiB of memory, a quarter of the memory limit; %s", s.Options.MaxMemory/windowShare>>20, narrow)
	}
	return found, nil
}
