// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// withSibling adds a copy of the first profile of pd as the third one.
func withSibling(t *testing.T) (pd pprofile.Profiles, sibling pprofile.Profile) {
	t.Helper()
	pd = profiletest.Small(t)
	sibling = firstScope(pd).Profiles().AppendEmpty()
	firstScope(pd).Profiles().At(0).CopyTo(sibling)
	return pd, sibling
}

// swap exchanges the first two samples.
func swap(p pprofile.Profile) {
	first := pprofile.NewSample()
	p.Samples().At(0).MoveTo(first)
	p.Samples().At(1).MoveTo(p.Samples().At(0))
	first.MoveTo(p.Samples().At(1))
}

func TestSiblingsWarnings(t *testing.T) {
	order := func(pd pprofile.Profiles, order []any, types ...any) {
		scope := firstScope(pd).Scope().Attributes()
		if err := scope.PutEmptySlice("pprof.scope.sample_type_order").FromRaw(order); err != nil {
			t.Fatal(err)
		}
		if types != nil {
			if err := scope.PutEmptySlice("pprof.scope.sample_types").FromRaw(types); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, test := range map[string]struct {
		change func(pd pprofile.Profiles, sibling pprofile.Profile)
		rules  []conformance.Rule
		says   string
	}{
		"the same order": {func(pprofile.Profiles, pprofile.Profile) {}, nil, ""},
		"another order": {
			func(_ pprofile.Profiles, sibling pprofile.Profile) { swap(sibling) },
			[]conformance.Rule{conformance.SampleOrder}, "profiles[2].samples[1] is after samples[0], and in",
		},
		"a sample fewer": {
			func(_ pprofile.Profiles, sibling pprofile.Profile) {
				n := 0
				sibling.Samples().RemoveIf(func(pprofile.Sample) bool { n++; return n == 1 })
			}, nil, "",
		},
		"no samples": {
			func(_ pprofile.Profiles, sibling pprofile.Profile) {
				sibling.Samples().RemoveIf(func(pprofile.Sample) bool { return true })
			}, []conformance.Rule{conformance.EmptyProfile}, "profiles[2] is without samples",
		},
		"sample types": {
			func(pd pprofile.Profiles, _ pprofile.Profile) { order(pd, []any{0, 0, 0}) }, nil, "",
		},
		"sample types, listed": {
			func(pd pprofile.Profiles, _ pprofile.Profile) {
				order(pd, []any{1, 1, 1}, "samples/count", "cpu/nanoseconds")
			}, nil, "",
		},
		"an order of other profiles": {
			func(pd pprofile.Profiles, _ pprofile.Profile) { order(pd, []any{0, 0}) },
			[]conformance.Rule{conformance.SampleTypes}, "for each profile the index of its sample type",
		},
		"a gap in the order": {
			func(pd pprofile.Profiles, _ pprofile.Profile) { order(pd, []any{1, 1, 1}) },
			[]conformance.Rule{conformance.SampleTypes}, "and 3 profiles",
		},
		"another listed type": {
			func(pd pprofile.Profiles, _ pprofile.Profile) {
				order(pd, []any{0, 0, 0}, "samples/count", "cpu/nanoseconds")
			}, []conformance.Rule{conformance.SampleTypes}, "2 listed sample types",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pd, sibling := withSibling(t)
			test.change(pd, sibling)
			report := conformance.Check(pd)
			var found []conformance.Finding
			for _, f := range report.Findings {
				if f.Rule != conformance.Unreferenced { // of the samples that were removed
					found = append(found, f)
				}
			}
			wantRules(t, found, test.rules, test.says)
		})
	}
}
