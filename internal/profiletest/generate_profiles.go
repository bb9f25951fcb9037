// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// NewRand returns the source of randomness of a test, the same for equal seeds.
// A test that takes a seed prints it when it fails.
func NewRand(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 0x70726f66696c6573))
}

// GenerateProfiles returns random profiles that conform to the format: all
// kinds of attribute values, links, several resources and scopes, all shapes,
// profiles without samples. Names come from small sets, so that two payloads
// have much in common.
func GenerateProfiles(r *rand.Rand) pprofile.Profiles {
	pd, err := expand.Build(GenerateExpanded(r))
	if err != nil {
		panic(fmt.Sprintf("profiletest: what GenerateExpanded makes cannot be built: %v", err))
	}
	return pd
}

// GenerateExpanded returns the profiles of [GenerateProfiles], written out.
func GenerateExpanded(r *rand.Rand) []expand.Profile {
	var out []expand.Profile
	for _, n := range distinct(r, 3) {
		g := &generator{r: r}
		resource := expand.Entity{
			SchemaURL:  pick(r, "", "https://opentelemetry.io/schemas/1.41.0"),
			Attributes: expand.AttributeSet(append(g.attributes(2, 2), expand.Attribute{Key: "service.name", Value: fmt.Sprint("service-", n)})),
		}
		for _, m := range distinct(r, 2) {
			scope := expand.Entity{
				Name:       fmt.Sprint("scope-", m),
				Version:    pick(r, "", "1.2.3"),
				SchemaURL:  pick(r, "", "https://opentelemetry.io/schemas/1.41.0"),
				Attributes: expand.AttributeSet(g.attributes(1, 2)),
			}
			for range 1 + r.IntN(3) {
				e := g.profile()
				e.Resource, e.Scope = resource, scope
				out = append(out, e)
			}
		}
	}
	return out
}

// distinct returns between 1 and limit different numbers below 2*limit.
func distinct(r *rand.Rand, limit int) []int {
	return r.Perm(2 * limit)[:1+r.IntN(limit)]
}

func pick[E any](r *rand.Rand, choices ...E) E {
	return choices[r.IntN(len(choices))]
}

// oneIn is true once in n times.
func oneIn(r *rand.Rand, n int) bool {
	return r.IntN(n) == 0
}

// generator draws parts; sizes are small and names few, so that they recur.
type generator struct {
	r *rand.Rand
}

const generatedEpoch = 1_700_000_000_000_000_000 // 2023, in nanoseconds

func (g *generator) profile() expand.Profile {
	r := g.r
	e := expand.Profile{
		Type:       pick(r, "cpu", "samples", "alloc_space", "off_cpu"),
		Unit:       pick(r, "nanoseconds", "count", "bytes", ""),
		PeriodType: pick(r, "cpu", ""),
		PeriodUnit: pick(r, "nanoseconds", ""),
		Period:     pick[int64](r, 0, 1, 10_000_000),
		Time:       generatedEpoch + uint64(r.IntN(100))*1_000_000_000,
		Duration:   pick[uint64](r, 1_000_000_000, 10_000_000_000),
		Attributes: expand.AttributeSet(g.attributes(2, 3)),
		Shape:      pick(r, expand.ShapeValues, expand.ShapeValues, expand.ShapeTimestamps, expand.ShapeBoth),
	}
	if oneIn(r, 2) {
		e.ProfileID = g.hexID(16)
	}
	if oneIn(r, 10) {
		e.DroppedAttributes = r.Uint32N(5)
	}
	seen := map[string]bool{}
	for range r.IntN(20) {
		s := &expand.Sample{Attributes: expand.AttributeSet(g.attributes(2, 6)), Link: g.link(), Sum: new(big.Int)}
		for range r.IntN(6) {
			s.Stack = append(s.Stack, g.frame())
		}
		if seen[s.Identity()] {
			continue
		}
		seen[s.Identity()] = true
		g.data(s, e)
		slices.SortFunc(s.Points, expand.Point.Compare)
		e.Samples = append(e.Samples, s)
	}
	if len(e.Samples) == 0 {
		e.Shape = expand.ShapeNone
	}
	return e
}

// data gives s the data that e's shape needs.
func (g *generator) data(s *expand.Sample, e expand.Profile) {
	r := g.r
	if e.Shape == expand.ShapeValues {
		s.Sum.SetInt64(g.value())
		return
	}
	for range 1 + r.IntN(4) {
		p := expand.Point{Timestamp: e.Time + r.Uint64N(e.Duration), Value: 1}
		if e.Shape == expand.ShapeBoth {
			p.Value = g.value()
		}
		s.Points = append(s.Points, p)
		s.Sum.Add(s.Sum, big.NewInt(p.Value))
	}
}

// value is mostly small, at times 0 or below, seldom large. Sums stay within int64.
func (g *generator) value() int64 {
	switch g.r.IntN(12) {
	case 0:
		return 0
	case 1:
		return -g.r.Int64N(100)
	case 2:
		return g.r.Int64N(1 << 50)
	case 3:
		return pick[int64](g.r, 1<<56-1, -1<<56)
	default:
		return 1 + g.r.Int64N(1000)
	}
}

func (g *generator) hexID(size int) string {
	id := make([]byte, size)
	for i := range id {
		id[i] = byte(g.r.UintN(256))
	}
	id[0] |= 1 // never all zeros
	return hex.EncodeToString(id)
}

// link is one of few, or none.
func (g *generator) link() string {
	if oneIn(g.r, 2) {
		return ""
	}
	return pick(g.r,
		"0102030405060708090a0b0c0d0e0f10/0102030405060708",
		"0102030405060708090a0b0c0d0e0f10/0000000000000001",
		"00000000000000000000000000000001/0102030405060708")
}

func (g *generator) frame() *expand.Frame {
	r := g.r
	f := &expand.Frame{Address: uint64(r.IntN(8)) * 0x1000}
	if oneIn(r, 2) {
		f.Mapping = expand.Mapping{
			Start:      0x400000,
			Limit:      0x400000 + uint64(1+r.IntN(2))*0x100000,
			Offset:     uint64(r.IntN(2)) * 0x1000,
			File:       pick(r, "", "/usr/bin/app", "/usr/bin/app", "[vdso]", "/memfd:jit (deleted)"),
			Attributes: expand.AttributeSet(append(g.attributes(1, 2), g.buildID()...)),
		}
		f.Address += f.Mapping.Start
		if oneIn(r, 4) { // sizes differ within a page
			end := f.Mapping.Limit
			f.Address, f.Mapping.Limit = end-0x400, end-pick[uint64](r, 0, 0x200, 0x800)
		} else if oneIn(r, 6) {
			f.Mapping.Start, f.Mapping.Limit = 0, 0 // addresses of the file
		}
	}
	for range r.IntN(4) {
		l := expand.Line{
			Function:   pick(r, "main", "worker", "éclair", ""),
			SystemName: pick(r, "", "_Z4mainv"),
			Filename:   pick(r, "", "main.go"),
			Line:       int64(r.IntN(5)),
			Column:     int64(r.IntN(2)),
		}
		if l.Function != "" || l.SystemName != "" || l.Filename != "" {
			l.StartLine = int64(r.IntN(3))
		}
		f.Lines = append(f.Lines, l)
	}
	if oneIn(r, 4) {
		f.Attributes = expand.AttributeSet(g.attributes(2, 3))
	}
	return f
}

// buildID is one of few, or none.
func (g *generator) buildID() []expand.Attribute {
	if oneIn(g.r, 2) {
		return nil
	}
	key := pick(g.r, "process.executable.build_id.gnu", "process.executable.build_id.htlhash")
	return []expand.Attribute{{Key: key, Value: pick[any](g.r, "abcdef", "abcdef", "123456", "", int64(1))}}
}

// attributes returns at most limit attributes with different ones of keys keys.
func (g *generator) attributes(limit, keys int) []expand.Attribute {
	var out []expand.Attribute
	for _, k := range g.r.Perm(keys)[:min(keys, g.r.IntN(limit+1))] {
		out = append(out, expand.Attribute{Key: fmt.Sprint("key-", k), Value: g.attributeValue(0)})
	}
	if len(out) > 0 && oneIn(g.r, 4) && limit > 2 {
		out[0].Unit = pick(g.r, "By", "ms")
	}
	return out
}

// attributeValue draws a value of any kind. Values of different kinds look the
// same on purpose: 1, "1", 1.0, true.
func (g *generator) attributeValue(depth int) any {
	r := g.r
	kinds := 12
	if depth == 2 {
		kinds = 10
	}
	switch r.IntN(kinds) {
	case 0:
		return nil
	case 1, 2, 3:
		return pick(r, "", "1", "true", "value", "日本")
	case 4, 5:
		return pick[int64](r, 0, 1, -1, math.MaxInt64)
	case 6:
		return pick(r, 0, 1, -1.5, math.Inf(1), math.NaN())
	case 7, 8:
		return oneIn(r, 2)
	case 9:
		return pick(r, []byte{}, []byte{1}, []byte("\xff1"))
	case 10:
		out := []any{}
		for range r.IntN(3) {
			out = append(out, g.attributeValue(depth+1))
		}
		return out
	default:
		out := expand.KeyValues{}
		for _, k := range r.Perm(3)[:r.IntN(3)] {
			out = append(out, expand.KeyValue{Key: fmt.Sprint("inner-", k), Value: g.attributeValue(depth + 1)})
		}
		return out
	}
}
