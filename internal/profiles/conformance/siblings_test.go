// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// swap exchanges the first two samples.
func swap(p pprofile.Profile) {
	first := pprofile.NewSample()
	p.Samples().At(0).MoveTo(first)
	p.Samples().At(1).MoveTo(p.Samples().At(0))
	first.MoveTo(p.Samples().At(1))
}

// removeSamples leaves all samples from an index on.
func removeSamples(p pprofile.Profile, before int) {
	n := 0
	p.Samples().RemoveIf(func(pprofile.Sample) bool { n++; return n <= before })
}

// Three profiles are in one scope, of which the last is a copy of the first, and changed.
func TestSiblingsWarnings(t *testing.T) {
	type change = func(scope pcommon.Map, sibling pprofile.Profile)
	order := func(order []any, types ...any) change {
		return func(scope pcommon.Map, _ pprofile.Profile) {
			require.NoError(t, scope.PutEmptySlice("pprof.scope.sample_type_order").FromRaw(order))
			if types != nil {
				require.NoError(t, scope.PutEmptySlice(attrkey.SampleTypes).FromRaw(types))
			}
		}
	}
	for name, test := range map[string]struct {
		change change
		rule   conformance.Rule
		says   string
	}{
		"the same order":             {func(pcommon.Map, pprofile.Profile) {}, "", ""},
		"another order":              {func(_ pcommon.Map, p pprofile.Profile) { swap(p) }, conformance.SampleOrder, "profiles[2].samples[1] is after samples[0], and in"},
		"a sample fewer":             {func(_ pcommon.Map, p pprofile.Profile) { removeSamples(p, 1) }, "", ""},
		"no samples":                 {func(_ pcommon.Map, p pprofile.Profile) { removeSamples(p, 2) }, conformance.EmptyProfile, "profiles[2] is without samples"},
		"sample types":               {order([]any{0, 0, 0}), "", ""},
		"sample types, listed":       {order([]any{1, 1, 1}, "samples/count", "cpu/nanoseconds"), "", ""},
		"an order of other profiles": {order([]any{0, 0}), conformance.SampleTypes, "for each profile the index of its sample type"},
		"a gap in the order":         {order([]any{1, 1, 1}), conformance.SampleTypes, "and 3 profiles"},
		"another listed type":        {order([]any{0, 0, 0}, "samples/count", "cpu/nanoseconds"), conformance.SampleTypes, "2 listed sample types"},
	} {
		t.Run(name, func(t *testing.T) {
			pd := profiletest.Small(t)
			sibling := firstScope(pd).Profiles().AppendEmpty()
			firstScope(pd).Profiles().At(0).CopyTo(sibling)
			test.change(firstScope(pd).Scope().Attributes(), sibling)
			found := slices.DeleteFunc(conformance.Check(pd).Findings, func(f conformance.Finding) bool {
				return f.Rule == conformance.Unreferenced // of the samples that were removed
			})
			var rules []conformance.Rule
			if test.rule != "" {
				rules = append(rules, test.rule)
			}
			wantRules(t, found, rules, test.says)
		})
	}
}
