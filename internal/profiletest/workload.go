// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"math/rand/v2"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// Workload describes a synthetic profile whose size, names and sharing of stacks
// are like those of a kind of real ones. Equal workloads and seeds make equal
// profiles.
type Workload struct {
	Name               string
	Samples            int // with different stacks or labels
	MinDepth, MaxDepth int // locations of a stack
	Functions          int
	// Ruby profiles have names of Ruby, no addresses and no mappings.
	Ruby bool
	// Timestamps gives each sample an end_timestamp_ns.
	Timestamps bool
}

// Workloads are those of the benchmarks.
func Workloads() []Workload {
	average := Workload{Name: "average Go", Samples: 2000, MinDepth: 20, MaxDepth: 40, Functions: 1200}
	timed := average
	timed.Name, timed.Timestamps = "average Go, timestamps", true
	return []Workload{
		average,
		timed,
		{Name: "deep Ruby", Samples: 2000, MinDepth: 100, MaxDepth: 300, Functions: 800, Ruby: true},
		{Name: "large aggregated", Samples: 100_000, MinDepth: 20, MaxDepth: 60, Functions: 8000},
	}
}

// call is a place in a function that calls another.
type call struct {
	location *profile.Location
	callee   int
}

type workloadGenerator struct {
	Workload
	r     *rand.Rand
	p     *profile.Profile
	calls [][]call // by function
}

// Pprof returns the profile: of CPU time over ten seconds, as of a service that is
// profiled at 100 Hz. Stacks are walks through a call graph in which most functions
// have one place that calls, so that they share their roots. A third of the samples
// has a label.
func (w Workload) Pprof(seed uint64) *profile.Profile {
	g := &workloadGenerator{Workload: w, r: NewRand(seed)}
	g.p = &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType:    &profile.ValueType{Type: "cpu", Unit: "nanoseconds"},
		Period:        10_000_000,
		TimeNanos:     generatedEpoch,
		DurationNanos: 10_000_000_000,
	}
	g.callGraph()
	g.samples()
	g.p = g.p.Compact() // numbers the used entries by first use
	return g.p
}

func (g *workloadGenerator) callGraph() {
	r := g.r
	var mapping *profile.Mapping
	if !g.Ruby {
		mapping = &profile.Mapping{
			ID: 1, Start: 0x400000, Limit: 0x4000000, File: "/usr/local/bin/checkout",
			BuildID: fmt.Sprintf("%040x", r.Uint64()), HasFunctions: true,
		}
		g.p.Mapping = []*profile.Mapping{mapping}
	}
	functions := make([]*profile.Function, g.Functions)
	for i := range functions {
		functions[i] = g.function(uint64(i + 1))
	}
	g.p.Function = functions
	g.calls = make([][]call, g.Functions)
	for i, f := range functions {
		// Half the functions call from one place, and fewer from more.
		for n := 1; n == 1 || n < 8 && oneIn(r, 2); n++ {
			line := f.StartLine + int64(1+r.IntN(60))
			l := &profile.Location{ID: uint64(len(g.p.Location) + 1), Mapping: mapping, Line: []profile.Line{{Function: f, Line: line}}}
			if !g.Ruby {
				l.Address = mapping.Start + uint64(i)*0x400 + uint64(r.IntN(0x400))
				if oneIn(r, 6) { // f was inlined
					outer := pick(r, functions...)
					l.Line = append(l.Line, profile.Line{Function: outer, Line: outer.StartLine + int64(1+r.IntN(60))})
				}
			}
			g.p.Location = append(g.p.Location, l)
			g.calls[i] = append(g.calls[i], call{location: l, callee: r.IntN(g.Functions)})
		}
	}
}

func (g *workloadGenerator) function(id uint64) *profile.Function {
	r := g.r
	noun := func() string {
		return pick(r, "Order", "Cart", "Session", "Conn", "Encoder", "Decoder", "Buffer", "Query", "Row", "Cache", "Index", "Token", "Batch", "Span", "Route", "Handler")
	}
	verb := func() string {
		return pick(r, "Serve", "Read", "Write", "Flush", "Parse", "Append", "Lookup", "Commit", "Marshal", "Validate", "Dispatch", "Retry", "Close", "Scan", "next", "grow")
	}
	start := int64(10 + r.IntN(900))
	if g.Ruby {
		gem := pick(r, "activerecord-7.1.3", "actionpack-7.1.3", "activesupport-7.1.3", "rack-3.0.9", "puma-6.4.2", "sidekiq-7.2.1", "redis-5.1.0")
		class := noun() + noun()
		return &profile.Function{
			ID: id, Name: fmt.Sprintf("%s%s#%s_%d", pick(r, "ActiveRecord::", "Rack::", "Puma::", ""), class, verb(), r.IntN(40)), StartLine: start,
			Filename: fmt.Sprintf("/usr/local/bundle/gems/%s/lib/%s_%d.rb", gem, class, r.IntN(6)),
		}
	}
	pkg := pick(r, "runtime", "net/http", "encoding/json", "database/sql", "github.com/acme/checkout/internal/cart", "github.com/acme/checkout/internal/order",
		"github.com/jackc/pgx/v5/pgconn", "google.golang.org/grpc/internal/transport", "go.opentelemetry.io/otel/sdk/trace")
	name := fmt.Sprintf("%s.%s%s%d", pkg, verb(), noun(), r.IntN(40))
	if oneIn(r, 2) {
		name = fmt.Sprintf("%s.(*%s%s).%s%d", pkg, noun(), noun(), verb(), r.IntN(10))
	}
	if oneIn(r, 6) {
		name += fmt.Sprintf(".func%d", 1+r.IntN(4))
	}
	return &profile.Function{
		ID: id, Name: name, SystemName: name, StartLine: start,
		Filename: fmt.Sprintf("/go/src/%s/%s_%d.go", pkg, pick(r, "server", "client", "codec", "pool", "store"), r.IntN(5)),
	}
}

func (g *workloadGenerator) samples() {
	r := g.r
	roots := 1 + g.Functions/200
	seen := map[string]bool{}
	var path []byte
	for len(g.p.Sample) < g.Samples {
		s := &profile.Sample{Location: make([]*profile.Location, g.MinDepth+r.IntN(g.MaxDepth-g.MinDepth+1))}
		path = path[:0]
		at := r.IntN(roots)
		for i := len(s.Location) - 1; i >= 0; i-- { // the root is last
			next := min(int(r.ExpFloat64()), len(g.calls[at])-1)
			c := g.calls[at][next]
			s.Location[i] = c.location
			path = append(path, byte(next))
			at = c.callee
		}
		label := ""
		if oneIn(r, 3) {
			label = fmt.Sprintf("/api/v1/route%02d", r.IntN(20))
			s.Label = map[string][]string{"http.route": {label}}
		}
		key := fmt.Sprint(s.Location[len(s.Location)-1].ID, label, path)
		if seen[key] {
			continue
		}
		seen[key] = true
		count := int64(1 + r.ExpFloat64()*2)
		s.Value = []int64{count, count * g.p.Period}
		if g.Timestamps {
			s.NumLabel = map[string][]int64{expand.LabelTimestamp: {generatedEpoch + r.Int64N(g.p.DurationNanos)}}
		}
		g.p.Sample = append(g.p.Sample, s)
	}
}
