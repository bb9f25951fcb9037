// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// The output of a scope may have other Profiles than its sources: snapshots are apart. So the attributes that restore the sample types
// of a pprof are read from each source and written again. All sources with the same
// sample types are of one scope, whichever of them have Profiles.

// sampleTypes returns the sample types of the pprof that the Profiles of sp are of, each
// once, or nil if they are unknown.
func (p *Payload) sampleTypes(sp pprofile.ScopeProfiles) []sampletypes.Type {
	if _, found := sp.Scope().Attributes().Get(sampletypes.OrderAttribute); !found {
		return nil
	}
	var few [8]sampletypes.Type
	all, _ := sampletypes.Read(sp.Scope().Attributes(), sampletypes.AppendTypes(few[:0], sp, p.text))
	seen := map[sampletypes.Type]bool{}
	return slices.DeleteFunc(all, func(t sampletypes.Type) bool {
		repeated := seen[t]
		seen[t] = true
		return repeated
	})
}

// sampleTypeAttributes are the attributes of a scope that describe its sample types.
var sampleTypeAttributes = []string{sampletypes.OrderAttribute, attrkey.SampleTypes}

// number returns the index of the sample type of p in s.types, or -1.
func (s *scope) number(tables *dictionary.Tables, p *mergedProfile) int {
	return slices.Index(s.types, sampletypes.Type{
		Type: tables.StringAt(p.key.sampleType), Unit: tables.StringAt(p.key.sampleUnit),
	})
}

// attributes returns the attributes of s for Profiles with the numbers order.
func (s *scope) attributes(order []int) pcommon.Map {
	attributes := pcommon.NewMap()
	s.pdata.Attributes().CopyTo(attributes)
	if s.types != nil {
		sampletypes.Write(attributes, s.types, order)
	}
	return attributes
}
