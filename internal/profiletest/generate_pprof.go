// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// GeneratePprof returns a random pprof that google/pprof's CheckValid accepts
// and that uses every field: labels with several values, of both kinds and with
// mixed units, numbers that are 0, valid and invalid trace and span ids,
// timestamps on some samples, folded locations, lines in any order, empty names,
// functions and mappings, ids that are sparse and out of order, entries and
// samples that are equal, samples that are 0, negative values, and no samples at
// all. All strings are valid UTF-8; see [BreakUTF8].
//
// It differs from google/pprof's own copy, written and read back, in that labels
// of number 0 without a unit are lost there: compare either with the generated
// profile, or with expand.Options.Labels.
func GeneratePprof(r *rand.Rand) *profile.Profile {
	g := &pprofGenerator{generator: generator{r: r}, p: &profile.Profile{}}
	g.header()
	g.mappings()
	g.functions()
	g.locations()
	g.samples()
	return g.p
}

type pprofGenerator struct {
	generator
	p *profile.Profile
}

func (g *pprofGenerator) header() {
	r, p := g.r, g.p
	for range 1 + r.IntN(4) {
		p.SampleType = append(p.SampleType, &profile.ValueType{
			Type: pick(r, "samples", "cpu", "alloc_objects", "inuse_space", ""),
			Unit: pick(r, "count", "nanoseconds", "bytes", ""),
		})
	}
	p.DefaultSampleType = pick(r, "", "", "cpu", "inuse_space", "unknown")
	p.TimeNanos = pick(r, 0, generatedEpoch, generatedEpoch+r.Int64N(1_000_000_000), -1)
	p.DurationNanos = pick[int64](r, 0, 1_000_000_000, 10_000_000_000, -5)
	if oneIn(r, 2) {
		p.PeriodType = &profile.ValueType{Type: pick(r, "cpu", ""), Unit: pick(r, "nanoseconds", "")}
	}
	p.Period = pick[int64](r, 0, 1, 10_000_000, -1)
	for range r.IntN(3) {
		p.Comments = append(p.Comments, pick(r, "a comment", "日本", ""))
	}
	p.DropFrames = pick(r, "", "runtime\\..*")
	p.KeepFrames = pick(r, "", "runtime\\.main")
	p.DocURL = pick(r, "", "https://example.com/doc")
}

// ids returns n different ids in no order.
func (g *pprofGenerator) ids(n int) []uint64 {
	r := g.r
	ids := make([]uint64, 0, n)
	for len(ids) < n {
		id := uint64(1 + r.IntN(3*n))
		if oneIn(r, 5) {
			id = r.Uint64()
		}
		if id != 0 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (g *pprofGenerator) mappings() {
	r := g.r
	for _, id := range g.ids(r.IntN(5)) {
		m := &profile.Mapping{ID: id}
		if !oneIn(r, 5) { // else it is wholly empty
			m.Start = uint64(r.IntN(4)) * 0x1000000
			m.Limit = m.Start + pick[uint64](r, 0x100000, 0x1000000)
			m.Offset = uint64(r.IntN(2)) * 0x1000
			m.File = pick(r, "", "/usr/bin/app", "/usr/lib/libc.so.6", "[vdso]", "[kernel.kallsyms]_text", "/usr/bin/old (deleted)")
			m.BuildID = pick(r, "", "deadbeef", "0123456789abcdef0123456789abcdef01234567",
				"aaaaaaaaaaaaaaaaaaaa/bbbbbbbbbbbbbbbbbbbb/cccccccccccccccccccc/dddddddddddddddddddd")
			m.HasFunctions, m.HasFilenames = oneIn(r, 2), oneIn(r, 2)
			m.HasLineNumbers, m.HasInlineFrames = oneIn(r, 2), oneIn(r, 2)
		}
		g.p.Mapping = append(g.p.Mapping, m)
	}
}

func (g *pprofGenerator) functions() {
	r := g.r
	for _, id := range g.ids(1 + r.IntN(8)) {
		f := &profile.Function{ID: id}
		if !oneIn(r, 6) { // else it is wholly empty
			f.Name = pick(r, "main", "worker", "main.(*T[...]).éclair", "")
			f.SystemName = pick(r, f.Name, "_Z4mainv", "")
			f.Filename = pick(r, "main.go", "/src/worker.go", "")
			if f.Name != "" || f.SystemName != "" || f.Filename != "" {
				f.StartLine = int64(r.IntN(3)) * 10
			}
		}
		g.p.Function = append(g.p.Function, f)
	}
}

func (g *pprofGenerator) locations() {
	r := g.r
	for _, id := range g.ids(1 + r.IntN(10)) {
		l := &profile.Location{ID: id, Address: uint64(r.IntN(6)) * 0x1000, IsFolded: oneIn(r, 6)}
		if len(g.p.Mapping) > 0 && !oneIn(r, 4) {
			l.Mapping = pick(r, g.p.Mapping...)
			l.Address += l.Mapping.Start
		}
		for range r.IntN(4) {
			l.Line = append(l.Line, profile.Line{
				Function: pick(r, g.p.Function...),
				Line:     int64(r.IntN(40)),
				Column:   int64(r.IntN(3)),
			})
		}
		g.p.Location = append(g.p.Location, l)
	}
}

func (g *pprofGenerator) samples() {
	r := g.r
	for range r.IntN(25) {
		s := &profile.Sample{}
		if len(g.p.Sample) > 0 && oneIn(r, 4) {
			twin := pick(r, g.p.Sample...)
			s.Location, s.Label, s.NumLabel, s.NumUnit = twin.Location, twin.Label, twin.NumLabel, twin.NumUnit
		} else {
			for range r.IntN(7) {
				s.Location = append(s.Location, pick(r, g.p.Location...))
			}
			g.labels(s)
		}
		zero := oneIn(r, 5)
		for range g.p.SampleType {
			if zero {
				s.Value = append(s.Value, 0)
			} else {
				s.Value = append(s.Value, g.value())
			}
		}
		g.p.Sample = append(g.p.Sample, s)
	}
}

func (g *pprofGenerator) labels(s *profile.Sample) {
	r := g.r
	if oneIn(r, 3) {
		return
	}
	s.Label, s.NumLabel, s.NumUnit = map[string][]string{}, map[string][]int64{}, map[string][]string{}
	for range r.IntN(3) {
		key := pick(r, "thread", "request", "both")
		for range 1 + r.IntN(5)/4 {
			s.Label[key] = append(s.Label[key], pick(r, "a", "b", "1", "日本"))
		}
	}
	for range r.IntN(3) {
		g.numLabel(s, pick(r, "bytes", "goid", "both"))
	}
	if oneIn(r, 4) {
		trace := pick(r, "0102030405060708090a0b0c0d0e0f10", "0102030405060708090a0b0c0d0e0f10",
			strings.Repeat("0", 32), "0102030405060708090A0B0C0D0E0F10", "0102")
		s.Label[expand.LabelTraceID] = []string{trace}
		if !oneIn(r, 4) {
			s.Label[expand.LabelSpanID] = []string{pick(r, "0102030405060708", "0102030405060708", strings.Repeat("0", 16), "none")}
		}
		if oneIn(r, 8) {
			s.Label[expand.LabelSpanID] = []string{"0102030405060708", "0102030405060709"}
		}
	}
	if oneIn(r, 4) {
		s.NumLabel[expand.LabelTimestamp] = []int64{pick[int64](r, generatedEpoch+r.Int64N(10), 1, -7)}
		s.NumUnit[expand.LabelTimestamp] = []string{pick(r, "", "nanoseconds")}
		if oneIn(r, 8) {
			s.NumLabel[expand.LabelTimestamp] = []int64{generatedEpoch, generatedEpoch + 1}
			delete(s.NumUnit, expand.LabelTimestamp)
		}
	}
}

// numLabel sets one or several numbers, with one unit, mixed units or none.
func (g *pprofGenerator) numLabel(s *profile.Sample, key string) {
	r := g.r
	unit := pick(r, "", "bytes", "count")
	var numbers []int64
	var units []string
	for range 1 + r.IntN(5)/3 {
		numbers = append(numbers, pick[int64](r, 0, 1, 1, 512, -3))
		if oneIn(r, 5) {
			unit = pick(r, "", "seconds")
		}
		units = append(units, unit)
	}
	s.NumLabel[key] = numbers
	delete(s.NumUnit, key)
	if slices.ContainsFunc(units, func(u string) bool { return u != "" }) {
		s.NumUnit[key] = units
	}
}

// BreakUTF8 makes some strings of p, anywhere in it, invalid UTF-8.
func BreakUTF8(r *rand.Rand, p *profile.Profile) {
	spoil := func(s *string) {
		if oneIn(r, 4) {
			*s += pick(r, "\xff", "\xc3", "\xed\xa0\x80", "\xff\xfe!")
		}
	}
	for _, t := range p.SampleType {
		spoil(&t.Type)
		spoil(&t.Unit)
	}
	for _, f := range p.Function {
		spoil(&f.Name)
		spoil(&f.SystemName)
		spoil(&f.Filename)
	}
	for _, m := range p.Mapping {
		spoil(&m.File)
		spoil(&m.BuildID)
	}
	for i := range p.Comments {
		spoil(&p.Comments[i])
	}
	for _, s := range []*string{&p.DropFrames, &p.KeepFrames, &p.DocURL} {
		spoil(s)
	}
	for _, s := range p.Sample {
		label := map[string][]string{}
		for _, key := range slices.Sorted(maps.Keys(s.Label)) {
			values := slices.Clone(s.Label[key])
			for i := range values {
				spoil(&values[i])
			}
			label[key] = values
		}
		s.Label = label
	}
}
