// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

const (
	diffSamples = 3    // samples shown of one profile
	diffFrames  = 4    // frames shown of one sample
	diffLine    = 500  // bytes of a line
	diffBytes   = 8192 // of the whole answer
)

// Diff says how got differs from want, naming the first differing samples; it
// is empty when they are equal. Neither the order of profiles nor that of
// samples counts. The answer is bounded to some 8 KiB.
func Diff(want, got []Profile) string {
	d := &differ{in: newInterner()}
	wanted, had := byHeader(want), byHeader(got)
	headers := slices.AppendSeq(slices.Collect(maps.Keys(wanted)), maps.Keys(had))
	slices.Sort(headers)
	for _, header := range slices.Compact(headers) {
		w, g := wanted[header], had[header]
		for i := range max(len(w), len(g)) {
			switch {
			case i >= len(g):
				d.printf("missing profile of %d samples: %s\n", len(w[i].Samples), header)
			case i >= len(w):
				d.printf("extra profile of %d samples: %s\n", len(g[i].Samples), header)
			default:
				d.samples(header, w[i].Samples, g[i].Samples)
			}
		}
	}
	if d.out.Len() == 0 {
		return ""
	}
	return shorten(fmt.Sprintf("want %d profiles, got %d\n%s", len(want), len(got), d.out.String()), diffBytes)
}

// DiffPprof compares a translation with the pprof it was made of, as far as
// google/pprof's types carry it: see [AsPprof]. Samples that are 0 throughout
// count. It is empty when they are equal.
func DiffPprof(want *profile.Profile, got pprofile.Profiles) string {
	expanded, err := Profiles(got)
	if err != nil {
		return err.Error()
	}
	return Diff(Normalize(Pprof(want), AsPprof), Normalize(expanded, AsPprof))
}

func byHeader(profiles []Profile) map[string][]*Profile {
	out := map[string][]*Profile{}
	for i := range profiles {
		header := profiles[i].Header()
		out[header] = append(out[header], &profiles[i])
	}
	return out
}

type differ struct {
	in  *interner
	out strings.Builder
}

func (d *differ) printf(format string, args ...any) {
	if d.out.Len() <= 2*diffBytes {
		fmt.Fprintf(&d.out, format, args...)
	}
}

func (d *differ) samples(header string, want, got []*Sample) {
	index := func(samples []*Sample) map[string]*Sample {
		out := make(map[string]*Sample, len(samples))
		for _, s := range samples {
			out[d.in.key(s)] = s
		}
		return out
	}
	wanted, had := index(want), index(got)
	var findings []string
	total := 0
	report := func(format string, s *Sample, args ...any) {
		total++
		if len(findings) < diffSamples {
			findings = append(findings, fmt.Sprintf("  "+format, args...)+"\n"+d.identity(s))
		}
	}
	for _, w := range want {
		g, ok := had[d.in.key(w)]
		switch {
		case !ok:
			report("missing sample of %s", w, w.Sum)
		case w.Sum.Cmp(g.Sum) != 0:
			report("wrong sum: want %s, got %s", w, w.Sum, g.Sum)
		case !slices.Equal(w.Points, g.Points):
			report("wrong points: want %s, got %s", w, points(w), points(g))
		}
	}
	for _, g := range got {
		if _, ok := wanted[d.in.key(g)]; !ok {
			report("extra sample of %s", g, g.Sum)
		}
	}
	if total == 0 {
		return
	}
	d.printf("profile %s\n  %d of %d wanted and %d had samples differ:\n%s", header, total, len(want), len(got), strings.Join(findings, ""))
	if total > len(findings) {
		d.printf("  and %d more\n", total-len(findings))
	}
}

func (d *differ) identity(s *Sample) string {
	lines := strings.Split(s.Identity(), "\n")
	if len(lines) > diffFrames+1 {
		last := lines[len(lines)-1]
		lines = append(lines[:diffFrames], fmt.Sprintf("... and %d frames more", len(s.Stack)-diffFrames), last)
	}
	for i, line := range lines {
		lines[i] = "      " + shorten(line, diffLine) + "\n"
	}
	return strings.Join(lines, "")
}

func points(s *Sample) string { return shorten(fmt.Sprint(s.Points), diffLine) }

// shorten cuts the middle out of s where it is longer than limit bytes.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := fmt.Sprintf(" ... (%d bytes) ... ", len(s)-limit)
	return strings.ToValidUTF8(s[:limit*2/3], "") + cut + strings.ToValidUTF8(s[len(s)-limit/3:], "")
}

// RequireSameSums compares the samples of in, summed by identity, with those of out,
// however they merged.
func RequireSameSums(t testing.TB, in []pprofile.Profiles, out pprofile.Profiles) {
	t.Helper()
	options := Options{Merge: true, SameCode: true, IgnoreTime: true, IgnoreProfileID: true, IgnoreZeroSamples: true}
	var want []Profile
	for _, pd := range in {
		expanded, err := Profiles(pd)
		require.NoError(t, err)
		want = append(want, expanded...)
	}
	got, err := Profiles(out)
	require.NoError(t, err)
	if diff := Diff(Normalize(want, options), Normalize(got, options)); diff != "" {
		t.Fatal(diff)
	}
}
