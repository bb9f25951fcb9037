// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingconnector

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// cpuWithoutTypes is what agents send as cpu.
func cpuWithoutTypes(periods ...int64) *profile.Profile {
	f := &profile.Function{ID: 1, Name: "f"}
	l := &profile.Location{ID: 1, Line: []profile.Line{{Function: f, Line: -1}}}
	p := &profile.Profile{Function: []*profile.Function{f}, Location: []*profile.Location{l}}
	for i, period := range periods {
		s := &profile.Sample{Location: p.Location, NumLabel: map[string][]int64{"source.event.time": {1e12 + int64(i)}}}
		if period != 0 {
			s.NumLabel["source.event.period"] = []int64{period}
		}
		p.Sample = append(p.Sample, s)
	}
	return p
}

func TestPprofAddsValuesAndHeader(t *testing.T) {
	for name, test := range map[string]struct {
		periods []int64
		wall    bool
		want    string // types, values, period and duration
	}{
		"wall":              {[]int64{10, 10}, true, "[samples wall] [[1 10000000] [1 10000000]] 10000000 11000000"},
		"periods differ":    {[]int64{10, 0}, true, "[samples wall] [[1 10000000] [1 0]] 0 11000000"},
		"no period":         {[]int64{0, 0}, true, "[samples] [[1] [1]] 0 2000000"},
		"absurd period":     {[]int64{math.MaxInt64, -1}, true, "[samples] [[1] [1]] 0 2000000"},
		"not of wall time":  {[]int64{10}, false, "[samples] [[1]] 10000000 10000000"},
		"with a time label": {[]int64{10}, true, "[samples wall] [[1 10000000]] 10000000 10000000"},
	} {
		t.Run(name, func(t *testing.T) {
			timestamps := name == "with a time label"
			message, err := completePprof(profiletest.Pprof(t, cpuWithoutTypes(test.periods...)), test.wall, timestamps)
			require.NoError(t, err)
			p, err := profile.ParseUncompressed(message)
			require.NoError(t, err)
			require.NoError(t, p.CheckValid())
			var types []string
			for _, st := range p.SampleType {
				types = append(types, st.Type)
			}
			var values [][]int64
			for i, s := range p.Sample {
				values = append(values, s.Value)
				want := map[string][]int64(nil)
				if timestamps {
					want = map[string][]int64{"end_timestamp_ns": {(1e12 + int64(i)) * 1e6}}
				}
				assert.Equal(t, want, s.NumLabel)
			}
			assert.Equal(t, test.want, fmt.Sprint(types, values, p.Period, p.DurationNanos))
			assert.Equal(t, int64(1_000_000_000_000_000_000), p.TimeNanos)
		})
	}
}

func TestPprofKeepsMessagesThatAreComplete(t *testing.T) {
	for seed := range uint64(200) {
		in := profiletest.GeneratePprof(profiletest.NewRand(seed))
		for _, s := range in.Sample { // google/pprof does not read a number 0 without a unit
			for key, numbers := range s.NumLabel {
				if slices.Contains(numbers, 0) {
					delete(s.NumLabel, key)
				}
			}
		}
		message, err := completePprof(profiletest.Pprof(t, in), true, true)
		require.NoError(t, err)
		want, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(profiletest.Pprof(t, in))
		require.NoError(t, err)
		got, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(message)
		require.NoError(t, err)
		require.Empty(t, expand.Diff(profiletest.Expand(t, want), profiletest.Expand(t, got)), "seed %d", seed)
	}
}

func TestPprofRejects_J5(t *testing.T) {
	valid := profiletest.Pprof(t, cpuWithoutTypes(10))
	withValues := cpuWithoutTypes(10)
	withValues.Sample[0].Value = []int64{1}
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"text":                 {[]byte("not a profile"), "byte "},
		"cut off":              {valid[:len(valid)-1], "byte "},
		"values without types": {profiletest.Pprof(t, withValues), "sample 0: has values, but the message has no sample types"},
		"label cut off":        {[]byte{0x12, 4, 0x1A, 2, 8, 0x80}, "bad varint"},
		"unknown location":     {[]byte{0x12, 2, 8, 7, 0x32, 0}, "nil location"},
		"unknown string":       {[]byte{0x0A, 2, 8, 7}, "malformed"},
	} {
		_, err := memoryOfPprof(test.data)
		if err == nil {
			_, err = completePprof(test.data, true, true)
		}
		assert.ErrorContains(t, err, test.want, name)
	}
	profiletest.Injected(t, "6 malformed messages")
}

func TestMemoryOfPprof(t *testing.T) {
	for name, data := range map[string][]byte{
		"an agent's":       profiletest.Pprof(t, cpuWithoutTypes(make([]int64, 10_000)...)),
		"strings":          bytes.Repeat([]byte{0x32, 0}, 100_000),
		"samples":          bytes.Repeat([]byte{0x12, 0}, 100_000),
		"labels":           bytes.Repeat([]byte{0x12, 2, 0x1A, 0}, 50_000),
		"labels of one":    append([]byte{0x12, 0x80, 0x80, 8}, bytes.Repeat([]byte{0x1A, 0}, 1<<16)...),
		"values":           append([]byte{0x12, 0x84, 0x80, 4, 0x12, 0x80, 0x80, 4}, make([]byte, 1<<16)...),
		"locations":        bytes.Repeat([]byte{0x22, 2, 0x22, 0}, 50_000),
		"lines of one":     append([]byte{0x22, 0x80, 0x80, 8}, bytes.Repeat([]byte{0x22, 0}, 1<<16)...),
		"functions":        bytes.Repeat([]byte{0x2A, 0}, 100_000),
		"mappings":         bytes.Repeat([]byte{0x1A, 0}, 100_000),
		"sample types":     bytes.Repeat([]byte{0x0A, 0}, 100_000),
		"comments":         append([]byte{0x6A, 0x80, 0x80, 4}, make([]byte, 1<<16)...),
		"unpacked numbers": append([]byte{0x12, 0x80, 0x80, 8}, bytes.Repeat([]byte{8, 0}, 1<<16)...),
	} {
		limit, err := memoryOfPprof(data)
		require.NoError(t, err, name)
		allocated := profiletest.AllocatedBy(func() { _, _ = completePprof(data, true, true) })
		assert.True(t, profiletest.RaceEnabled || allocated <= uint64(limit), name)
	}
}

func FuzzPprof(f *testing.F) {
	f.Add(profiletest.Pprof(f, cpuWithoutTypes(10, 20)), true)
	f.Add(profiletest.Pprof(f, profiletest.GeneratePprof(profiletest.NewRand(1))), false)
	f.Fuzz(func(t *testing.T, data []byte, wall bool) {
		message, err := completePprof(data, wall, wall)
		if err != nil {
			return
		}
		if pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(message); err == nil {
			profiletest.RequireConforms(t, pd)
		}
	})
}

func FuzzParseCallStack(f *testing.F) {
	f.Add("\"main\" #1 nid=0x1\n  State: RUNNABLE\nat a.b(c:1:2)\nat d.e(f)\n")
	f.Add("at (")
	f.Fuzz(func(t *testing.T, text string) {
		stack, err := parseCallStack(text)
		if err != nil {
			return
		}
		record := plog.NewLogRecord()
		record.SetTimestamp(1e18)
		record.Attributes().PutInt(labelPeriod, 10)
		stacks := newCallStacks(false)
		stacks.add(stack, record)
		message, err := encode(&stacks.p, stacks.moments, true, true)
		require.NoError(t, err)
		pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(message)
		require.NoError(t, err)
		profiletest.RequireConforms(t, pd)
		require.Equal(t, 2, pd.ProfileCount())
	})
}

func TestParseCallStackNamesTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "no frame, want a line",
		"\"main\" #1\nState: x\n":        "no frame, want a line",
		"\n\nat a.b(c:1)\nat a.b":        `line 4: "at a.b": must be "at namespace.function(file:line)"`,
		"\n\n" + strings.Repeat("x", 99): `line 3: "` + strings.Repeat("x", 80) + `": must be`,
	} {
		_, err := parseCallStack(text)
		assert.ErrorContains(t, err, want)
	}
}

// Agents of all ages write places in their own form.
func TestPlacesOfFrames(t *testing.T) {
	for place, want := range map[string]frame{
		"C.java:12":            {file: "C.java", line: 12},
		"C.java:12 5":          {file: "C.java", line: 12, column: 5},
		"C.java:12:5":          {file: "C.java", line: 12, column: 5},
		"C.java:12:14 5:9":     {file: "C.java", line: 12, column: 5},
		"C.java:12 5:9":        {file: "C.java", line: 12, column: 5},
		"C.java:12:14 5":       {file: "C.java", line: 12, column: 5},
		`C:\a b\c.cs:12 col:7`: {file: `C:\a b\c.cs`, line: 12, column: 7},
		"my file.js:3:9":       {file: "my file.js", line: 3, column: 9},
		"file 7:3":             {file: "file 7", line: 3},
		"http://x:80/a.js:3":   {file: "http://x:80/a.js", line: 3},
		"Native Method":        {file: "Native Method"},
		"unknown:0":            {},
		"unknown":              {},
		"Unknown Source":       {},
		"a:-1":                 {file: "a"},
		"a:99999999999":        {file: "a:99999999999"},
		"":                     {},
	} {
		got, err := parseFrame("at a.b(" + place + ")")
		require.NoError(t, err)
		want.function = "a.b"
		assert.Equal(t, want, got, place)
	}
}
