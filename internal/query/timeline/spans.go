// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

// Span is what samples say of a span in a service.
type Span struct {
	Service string
	ID      pcommon.SpanID
	// First and Last are the start of the first event and the end of the last one. Untimed says that samples without timestamps, for
	// which the time of their Profiles counts, are among them.
	First, Last uint64
	Untimed     bool
	Samples     int64
	// OnCPU, OffCPU and Locked are sums in nanoseconds. Waiting for a lock is not in OffCPU.
	OnCPU, OffCPU, Locked uint64
}

// Spans are those of a trace. Their time and memory are linear in the samples and spans.
type Spans struct {
	most int
	all  map[spanKey]*Span
	// Left is the number of times that a sample named a span beyond the limit.
	Left int
}

type spanKey struct {
	service string
	id      pcommon.SpanID
}

// spanSize is the memory of a Span in bytes, and maxSpans how many are summed, whatever the memory.
const (
	spanSize = 300
	maxSpans = 20_000
)

// SpansWithin returns no spans. There may be as many as fit into so many bytes of memory, but not more than maxSpans.
func SpansWithin(memory int64) *Spans { return NewSpans(int(min(maxSpans, memory/spanSize))) }

// NewSpans returns no spans. There may be so many.
func NewSpans(most int) *Spans { return &Spans{most: most, all: map[spanKey]*Span{}} }

// Add adds the spans that samples of a payload name. A sample that names several counts for each of them.
func (s *Spans) Add(ctx context.Context, pd pprofile.Profiles) error {
	names := query.SpansOf(pd)
	var ids []pcommon.SpanID
	var resource pprofile.ResourceProfiles
	service, known := "", false
	return eachSample(ctx, pd, func(of *sample) error {
		if of.counted {
			return nil
		}
		if ids = names.Append(ids[:0], of.profile.Profile, of.Sample); len(ids) == 0 {
			return nil
		}
		if !known || resource != of.resource {
			resource, known = of.resource, true
			service = dictionary.TextOf(resource.Resource().Attributes(), "service.name")
		}
		var sum Span
		sum.measure(of)
		for i, id := range ids {
			if slices.Contains(ids[:i], id) {
				continue
			}
			key := spanKey{service, id}
			span := s.all[key]
			if span == nil {
				if len(s.all) == s.most {
					s.Left++
					continue
				}
				span = &Span{Service: service, ID: id}
				s.all[key] = span
			}
			span.add(&sum)
		}
		return nil
	})
}

// measure reads a sample.
func (s *Span) measure(of *sample) {
	time := uint64(0)
	for k := range of.timestamps.Len() {
		start, end := of.extent(k)
		s.add(&Span{First: start, Last: end, Samples: 1})
		time = addClamped(time, of.time(of.value(k)))
	}
	if of.timestamps.Len() == 0 {
		s.add(&Span{First: of.from, Last: max(of.from, of.to), Untimed: true, Samples: 1})
		for _, value := range of.values.All() {
			time = addClamped(time, of.time(value))
		}
	}
	switch of.state.class() {
	case onCPU:
		s.OnCPU = time
	case offCPU:
		s.OffCPU = time
	case locked:
		s.Locked = time
	}
}

func (s *Span) add(other *Span) {
	if s.Samples == 0 || other.First < s.First {
		s.First = other.First
	}
	s.Last, s.Untimed, s.Samples = max(s.Last, other.Last), s.Untimed || other.Untimed, s.Samples+other.Samples
	s.OnCPU, s.OffCPU, s.Locked = addClamped(s.OnCPU, other.OnCPU), addClamped(s.OffCPU, other.OffCPU), addClamped(s.Locked, other.Locked)
}

// Spans returns all spans by service, and those of a service by their start.
func (s *Spans) Spans() []*Span {
	all := make([]*Span, 0, len(s.all))
	for _, span := range s.all {
		all = append(all, span)
	}
	slices.SortFunc(all, func(a, b *Span) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return all
}
