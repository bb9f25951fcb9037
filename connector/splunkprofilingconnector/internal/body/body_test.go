// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package body_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/connector/splunkprofilingconnector/internal/body"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

func unlimited(int64) error { return nil }

func encode(t testing.TB, p *profile.Profile) []byte {
	t.Helper()
	var buf bytes.Buffer
	require.NoError(t, p.WriteUncompressed(&buf))
	return buf.Bytes()
}

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
		options body.Options
		types   []string
		values  [][]int64
		period  int64
		length  int64
	}{
		"wall":              {[]int64{10, 10}, body.Options{Wall: true}, []string{"samples", "wall"}, [][]int64{{1, 10e6}, {1, 10e6}}, 10e6, 11e6},
		"periods differ":    {[]int64{10, 0}, body.Options{Wall: true}, []string{"samples", "wall"}, [][]int64{{1, 10e6}, {1, 0}}, 0, 11e6},
		"no period":         {[]int64{0, 0}, body.Options{Wall: true}, []string{"samples"}, [][]int64{{1}, {1}}, 0, 2e6},
		"absurd period":     {[]int64{math.MaxInt64, -1}, body.Options{Wall: true}, []string{"samples"}, [][]int64{{1}, {1}}, 0, 2e6},
		"not of wall time":  {[]int64{10}, body.Options{}, []string{"samples"}, [][]int64{{1}}, 10e6, 10e6},
		"with a time label": {[]int64{10}, body.Options{Wall: true, Timestamps: true}, []string{"samples", "wall"}, [][]int64{{1, 10e6}}, 10e6, 10e6},
	} {
		t.Run(name, func(t *testing.T) {
			message, err := body.Pprof(encode(t, cpuWithoutTypes(test.periods...)), test.options, unlimited)
			require.NoError(t, err)
			p, err := profile.ParseUncompressed(message)
			require.NoError(t, err)
			require.NoError(t, p.CheckValid())
			var types []string
			for _, st := range p.SampleType {
				types = append(types, st.Type)
			}
			assert.Equal(t, test.types, types)
			for i, s := range p.Sample {
				assert.Equal(t, test.values[i], s.Value)
				assert.NotContains(t, s.NumLabel, body.LabelTime)
				assert.NotContains(t, s.NumLabel, body.LabelPeriod)
				if test.options.Timestamps {
					assert.Equal(t, []int64{(1e12 + int64(i)) * 1e6}, s.NumLabel["end_timestamp_ns"])
				} else {
					assert.Empty(t, s.NumLabel)
				}
			}
			assert.Equal(t, test.period, p.Period)
			assert.Equal(t, int64(1_000_000_000_000_000_000), p.TimeNanos)
			assert.Equal(t, test.length, p.DurationNanos)
		})
	}
}

func TestPprofKeepsMessagesThatAreComplete(t *testing.T) {
	for seed := range uint64(200) {
		in := profiletest.GeneratePprof(profiletest.NewRand(seed))
		message, err := body.Pprof(encode(t, in), body.Options{Wall: true, Timestamps: true}, unlimited)
		require.NoError(t, err)
		want, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(encode(t, in))
		require.NoError(t, err)
		got, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(message)
		require.NoError(t, err)
		wantExpanded, err := expand.Profiles(want)
		require.NoError(t, err)
		gotExpanded, err := expand.Profiles(got)
		require.NoError(t, err)
		require.Empty(t, expand.Diff(wantExpanded, gotExpanded), "seed %d", seed)
	}
}

func TestPprofRejects_J5(t *testing.T) {
	valid := encode(t, cpuWithoutTypes(10))
	withValues := cpuWithoutTypes(10)
	withValues.Sample[0].Value = []int64{1}
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"text":                 {[]byte("not a profile"), "byte "},
		"cut off":              {valid[:len(valid)-1], "byte "},
		"values without types": {encode(t, withValues), "sample 0: has values, but the message has no sample types"},
		"label cut off":        {[]byte{0x12, 4, 0x1A, 2, 8, 0x80}, "sample 0: label: "},
	} {
		_, err := body.Pprof(test.data, body.Options{Wall: true}, unlimited)
		assert.ErrorContains(t, err, test.want, name)
	}
	for n := range valid {
		if message, err := body.Pprof(valid[:n], body.Options{Wall: true}, unlimited); err == nil {
			_, _ = (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(message)
		}
	}
	profiletest.Injected(t, "4 malformed messages, every prefix of a valid one")
}

func TestPprofReservesBeforeItAllocates(t *testing.T) {
	limit := errors.New("no more")
	data := bytes.Repeat([]byte{0x32, 0}, 1<<20) // 2 MiB of empty strings
	allocated := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			_, err := body.Pprof(data, body.Options{}, func(int64) error { return limit })
			require.ErrorIs(b, err, limit)
		}
	})
	assert.Less(t, allocated.AllocedBytesPerOp(), int64(4<<10))
}

func FuzzPprof(f *testing.F) {
	f.Add(encode(f, cpuWithoutTypes(10, 20)), true)
	f.Add(encode(f, profiletest.GeneratePprof(profiletest.NewRand(1))), false)
	f.Fuzz(func(t *testing.T, data []byte, wall bool) {
		message, err := body.Pprof(data, body.Options{Wall: wall, Timestamps: wall}, unlimited)
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
		stack, err := body.ParseCallStack(text)
		if err != nil {
			return
		}
		builder := body.NewBuilder(body.Options{Wall: true, Timestamps: true}, false)
		builder.Add(body.Sample{CallStack: stack, Time: 1e18, Period: 10})
		pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(builder.Finish())
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
		_, err := body.ParseCallStack(text)
		assert.ErrorContains(t, err, want)
	}
}
