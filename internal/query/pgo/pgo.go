// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pgo makes profiles for profile-guided optimization of Go programs: see https://go.dev/doc/pgo.
package pgo

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// Type is the profile type that the compiler uses.
const Type = "cpu"

// Profile is one for go build -pgo, with what it was made of.
type Profile struct {
	// Pprof has what the compiler uses, which is the weight of each call. Its comments say what it was made of.
	Pprof *profile.Profile
	// Versions are those of service.version, and BuildIDs those of the programs and libraries that ran, the largest part first.
	Versions, BuildIDs []Part
	// Samples is how many the profiler has taken. First and Last are the start of the earliest profile and the end of the latest one;
	// zero, if they state no time.
	Samples     float64
	First, Last time.Time
	// WithoutStart is the part of the calls that the compiler ignores, because the caller has no start line.
	WithoutStart float64
	// Notes are for the reader.
	Notes []string
}

// Part is a version, and its part of the CPU time: 0.8 for 80 %.
type Part struct {
	Name  string
	Share float64
}

// Make makes the profile of a selection, whose type is Type unless it has one.
func Make(ctx context.Context, source *query.Source, sel *query.Selection) (*Profile, error) {
	if len(sel.Types) == 0 {
		of := *sel
		of.Types = []string{Type}
		sel = &of
	}
	var versions map[string]map[string]float64 // by sample type
	var services map[string]bool
	var first, last uint64
	err := query.Repeat(func() error {
		versions, services, first, last = map[string]map[string]float64{}, map[string]bool{}, 0, 0
		return source.EachSummary(ctx, sel, []string{"service.version"}, func(values []string, of *contents.Summary) error {
			services[of.Service] = true
			if versions[of.SampleType] == nil {
				versions[of.SampleType] = map[string]float64{}
			}
			versions[of.SampleType][values[0]] += float64(of.Sum)
			if of.Start > 0 && (first == 0 || of.Start < first) {
				first = of.Start
			}
			last = max(last, of.Start, of.End)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	if len(services) > 1 {
		return nil, &query.TypesError{Of: "services, of which each is a program", Parameter: "service", Choices: slices.Sorted(maps.Keys(services))}
	}
	compared, err := query.Compare(ctx, source, sel, source, nil)
	if err != nil {
		return nil, err
	}
	calls, err := callsOf(compared.New.Pprof)
	if err != nil {
		return nil, err
	}
	p := &Profile{
		Pprof: calls.pprof(), BuildIDs: buildIDs(compared.New.Pprof, slices.Index(compared.New.Pprof.SampleType, calls.sampleType)), WithoutStart: calls.withoutStart(),
		Versions: partsOf(versions[calls.sampleType.Type]), Samples: compared.Shown().New.Samples, Notes: compared.Notes,
	}
	if last > 0 {
		p.First, p.Last = query.TimeOf(first).UTC(), query.TimeOf(last).UTC()
	}
	p.Pprof.Comments = p.Facts()
	return p, nil
}

// buildIDs returns the build IDs of what ran, by the innermost location of each sample.
func buildIDs(p *profile.Profile, column int) []Part {
	ids := map[string]float64{}
	for _, s := range p.Sample {
		if len(s.Location) > 0 {
			id := ""
			if m := s.Location[0].Mapping; m != nil {
				id = m.BuildID
			}
			ids[id] += float64(s.Value[column])
		}
	}
	return partsOf(ids)
}

// partsOf returns the parts that have a name. Those without count for the whole.
func partsOf(sums map[string]float64) (parts []Part) {
	const most = 20
	total := 0.0
	for _, sum := range sums {
		total += sum
	}
	for name, sum := range maps.All(sums) {
		if name != "" && sum > 0 {
			parts = append(parts, Part{name, sum / total})
		}
	}
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Name, b.Name)) })
	return parts[:min(most, len(parts))]
}

// List writes parts in ASCII: "1.4.0 (80 %), 1.3.9 (20 %)", or what to say if there are none. It cuts long names.
func List(parts []Part, none string) string {
	if len(parts) == 0 {
		return none
	}
	texts := make([]string, len(parts))
	for i, part := range parts {
		const most = 100
		name := part.Name
		if len(name) > most {
			name = name[:most] + "..."
		}
		name = strconv.QuoteToASCII(name)
		texts[i] = fmt.Sprintf("%s (%s)", name[1:len(name)-1], webui.Percent(part.Share))
	}
	return strings.Join(texts, ", ")
}

// Facts say which versions the profile is of, and from when, a line each. They do not depend on the time at which they are asked for.
func (p *Profile) Facts() []string {
	facts := []string{
		"service.version: " + List(p.Versions, "not stated"),
		"Build IDs: " + List(p.BuildIDs, "not stated"),
		fmt.Sprintf("%.0f samples", p.Samples),
	}
	if !p.Last.IsZero() {
		facts = append(facts, "Profiled from "+p.First.Format(time.RFC3339)+" to "+p.Last.Format(time.RFC3339))
	}
	return facts
}
