// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// goProgram is a CPU profile of a version of a program.
func goProgram(t *testing.T, version, buildID string, at time.Time, samples int64) pprofile.Profiles {
	t.Helper()
	m := &profile.Mapping{ID: 1, Start: 0x1000, Limit: 0x9000, File: "/bin/checkout", BuildID: buildID}
	caller := &profile.Function{ID: 1, Name: "main.serve", StartLine: 10}
	callee := &profile.Function{ID: 2, Name: "main.encode", StartLine: 20}
	inner := &profile.Location{ID: 1, Mapping: m, Address: 0x2000, Line: []profile.Line{{Function: callee, Line: 21}}}
	outer := &profile.Location{ID: 2, Mapping: m, Address: 0x3000, Line: []profile.Line{{Function: caller, Line: 12}}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 1e7, DurationNanos: 10e9, TimeNanos: at.UnixNano(),
		Mapping: []*profile.Mapping{m}, Function: []*profile.Function{caller, callee}, Location: []*profile.Location{inner, outer},
		Sample: []*profile.Sample{{Value: []int64{samples, samples * 1e7}, Location: []*profile.Location{inner, outer}}},
	}
	pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(profiletest.Pprof(t, p))
	require.NoError(t, err)
	attributes := pd.ResourceProfiles().At(0).Resource().Attributes()
	attributes.PutStr("service.name", "checkout")
	if version != "" {
		attributes.PutStr("service.version", version)
	}
	return pd
}

func TestProfilesForTheCompilerSayWhatTheyAreOf(t *testing.T) {
	s := newSite(t)
	newest := s.now.Add(-time.Hour).Truncate(time.Second)
	s.write(goProgram(t, "1.4.0", "aaaa", newest.Add(-10*time.Second), 300), goProgram(t, "1.3.9", "bbbb", newest.Add(-2*time.Hour), 60),
		goProgram(t, "", "", newest.Add(-3*time.Hour), 40))
	w := s.get("/api/pgo?service=checkout")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	h := w.Header()
	assert.Equal(t, "1.4.0 (75 %), 1.3.9 (15 %)", h.Get("Profile-Versions"))
	assert.Equal(t, "aaaa (75 %), bbbb (15 %)", h.Get("Profile-Build-Ids"))
	assert.Equal(t, "400", h.Get("Profile-Samples"))
	assert.Equal(t, newest.UTC().Format(http.TimeFormat), h.Get("Last-Modified"))
	assert.Contains(t, []string{"3600", "3601"}, h.Get("Profile-Age-Seconds"))

	p, err := profile.Parse(w.Body)
	require.NoError(t, err)
	assert.Equal(t, int64(400), profiletest.Sums(p)["samples/count"])
	assert.Contains(t, p.Comments, "service.version: 1.4.0 (75 %), 1.3.9 (15 %)")

	// What was profiled before the last day does not hold.
	w = s.get("/api/pgo?service=checkout&to=-1d&from=-2d")
	assert.Equal(t, http.StatusNotFound, w.Code)
	w = s.get("/api/pgo")
	assert.Equal(t, http.StatusBadRequest, w.Code)
	assert.Contains(t, w.Body.String(), "service must be set once")
}
