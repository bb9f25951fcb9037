// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// TestGeneratePprof: what is generated is valid, survives google/pprof's own
// writing and reading but for what is documented, and uses every field.
func TestGeneratePprof(t *testing.T) {
	var text strings.Builder
	seen := map[string]int{}
	for seed := range uint64(Rounds(t, 200, 5000)) {
		p := GeneratePprof(NewRand(seed))
		if err := p.CheckValid(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		var written bytes.Buffer
		if err := p.WriteUncompressed(&written); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		parsed, err := profile.ParseUncompressed(written.Bytes())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := expand.Diff(expand.Normalize(expand.Pprof(p), expand.AsPprof), expand.Normalize(expand.Pprof(parsed), expand.AsPprof)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		for _, e := range expand.Pprof(p) {
			for _, s := range e.Samples {
				if s.Link != "" {
					seen["links"]++
				}
				if len(s.Points) > 0 {
					seen["timestamps"]++
				}
				if s.Sum.Sign() == 0 && !slices.ContainsFunc(s.Points, func(p expand.Point) bool { return p.Value != 0 }) {
					seen["zeros"]++
				}
				if s.Sum.Sign() < 0 {
					seen["negative sums"]++
				}
				text.WriteString(s.Identity())
			}
			if len(e.Samples) == 0 {
				seen["empty profiles"]++
			}
		}
		if len(p.SampleType) > 0 && len(expand.Pprof(p)[0].Samples) < len(p.Sample) {
			seen["equal samples"]++
		}
	}
	for _, what := range []string{"links", "timestamps", "zeros", "negative sums", "empty profiles", "equal samples"} {
		if seen[what] == 0 {
			t.Errorf("500 profiles have no %s", what)
		}
	}
	for _, part := range []string{
		`"thread"="a"`, `"thread"=["`, `"bytes"=1 "bytes"`, `"bytes"=0`, `{"unit"=`, `"both"=["`, `"trace_id"="0102"`,
		"is_folded", "has_inline_frames", "build_id.go", "build_id.gnu", "kernel.kallsyms", `""@"":`, " < ", `"end_timestamp_ns"=-7`, `"end_timestamp_ns"=[`,
	} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("500 profiles have nothing that reads %s", part)
		}
	}
}

func TestGenerateIsRepeatable(t *testing.T) {
	for seed := range uint64(20) {
		var first, second bytes.Buffer
		if err := GeneratePprof(NewRand(seed)).WriteUncompressed(&first); err != nil {
			t.Fatal(err)
		}
		if err := GeneratePprof(NewRand(seed)).WriteUncompressed(&second); err != nil {
			t.Fatal(err)
		}
		a, err := profile.ParseUncompressed(first.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		b, err := profile.ParseUncompressed(second.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if a.String() != b.String() {
			t.Fatalf("seed %d: two pprofs", seed)
		}
		x, err := conformance.Marshal(GenerateProfiles(NewRand(seed)))
		if err != nil {
			t.Fatal(err)
		}
		y, err := conformance.Marshal(GenerateProfiles(NewRand(seed)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x, y) {
			t.Fatalf("seed %d: two payloads", seed)
		}
	}
}

func TestBreakUTF8(t *testing.T) {
	broken := 0
	for seed := range uint64(100) {
		r := NewRand(seed)
		p := GeneratePprof(r)
		BreakUTF8(r, p)
		if err := p.CheckValid(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		pd, err := expand.Build(oneShape(expand.Pprof(p)))
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, v := range conformance.Check(pd).Findings {
			if v.Rule == conformance.UTF8 || v.Rule == conformance.Decode {
				t.Fatalf("seed %d: not repaired: %s", seed, v)
			}
		}
		if strings.Contains(fmt.Sprint(expand.Diff(nil, expand.Pprof(p)), p), "\uFFFD") {
			broken++
		}
	}
	if broken < 50 {
		t.Errorf("only %d of 100 profiles were broken", broken)
	}
}

// oneShape drops profiles that Build rejects: sums beyond int64.
func oneShape(profiles []expand.Profile) []expand.Profile {
	var out []expand.Profile
	for _, e := range profiles {
		fits := true
		for _, s := range e.Samples {
			fits = fits && (e.Shape != expand.ShapeValues || s.Sum.IsInt64())
		}
		if fits {
			out = append(out, e)
		}
	}
	return out
}
