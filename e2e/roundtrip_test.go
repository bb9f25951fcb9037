// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// TestRoundTrip pushes each profile as its own service and stops the program. For each service and
// sample type the files hold exactly the samples that google/pprof reads: stacks with all lines
// and addresses, labels, and summed values.
func TestRoundTrip(t *testing.T) {
	parallel(t)
	for _, test := range []struct{ name, window, exporter string }{
		{"one window until the end, proto", "1h", "    group_by: []"},
		{"short windows, proto, rotation", "300ms", "    rotation: {max_records: 2, max_age: 1s}"},
		{"no window, JSON", "0s", "    format: json"},
	} {
		t.Run(test.name, func(t *testing.T) {
			parallel(t)
			c := start(t, test.window, test.exporter)
			pushed := payloads(t)
			if full, _ := profiletest.Soak(t); !full { // large ones take long to compare
				pushed = slices.DeleteFunc(pushed, func(p payload) bool { return len(p.data) > 256<<10 })
			}
			for _, p := range pushed {
				c.push(t, p.service, p.data)
			}
			c.stop(t)

			written := byService(readProfiles(t, c.files))
			for _, p := range pushed {
				t.Run(p.service, func(t *testing.T) {
					requireSame(t, p, written[p.service])
				})
				delete(written, p.service)
			}
			assert.Empty(t, written, "the files hold services that nobody pushed: %q", slices.Collect(maps.Keys(written)))
		})
	}
}

// requireSame compares the written profiles of a service with the pushed one.
func requireSame(t *testing.T, pushed payload, written []expand.Profile) {
	t.Helper()
	require.NotEmpty(t, written, "no profile was written")
	ids := map[string]bool{}
	for i := range written {
		if written[i].ProfileID == "" || ids[written[i].ProfileID] {
			t.Errorf("profile %d has the id %q, want one of its own", i, written[i].ProfileID)
		}
		ids[written[i].ProfileID] = true
	}
	want, got := pushed.expected(t), types(written)
	if got[0] != want.types[0] || !want.mixed && !slices.Equal(got, want.types) {
		t.Errorf("the types are in the order %q, want %q, the default first", got, want.types)
	}
	requireTimes(t, pushed, 1, written)
}

// expectation is the content of a payload by google/pprof.
type expectation struct {
	options expand.Options
	types   []string
	// mixed: the profile covers an interval and also has snapshots, which the processor writes
	// separately.
	mixed    bool
	profiles []expand.Profile
}

// expectations caches by service: large profiles take long.
var (
	expectations   = map[string]*expectation{}
	expectationsMu sync.Mutex
)

func (p payload) expected(t *testing.T) *expectation {
	t.Helper()
	expectationsMu.Lock()
	defer expectationsMu.Unlock()
	if have, ok := expectations[p.service]; ok {
		return have
	}
	parsed, err := profile.ParseData(p.data)
	require.NoError(t, err)
	expanded := expand.Pprof(parsed)
	e := &expectation{options: expand.AsPprof, types: types(expanded)}
	e.mixed = parsed.DurationNanos > 0 && slices.Contains(e.types, "inuse_space")
	e.options.IgnoreZeroSamples = true
	e.options.IgnoreTime = parsed.TimeNanos == 0 // the receiver gives a profile without a time one
	e.profiles = e.normalize(expanded)
	expectations[p.service] = e
	return e
}

// normalize prepares profiles for comparison and removes those without samples.
func (e *expectation) normalize(profiles []expand.Profile) []expand.Profile {
	out := expand.Normalize(profiles, e.options)
	return slices.DeleteFunc(out, func(p expand.Profile) bool { return len(p.Samples) == 0 })
}

// types returns the sample types in order.
func types(profiles []expand.Profile) []string {
	var types []string
	for _, p := range profiles {
		if !slices.Contains(types, p.Type) {
			types = append(types, p.Type)
		}
	}
	return types
}
