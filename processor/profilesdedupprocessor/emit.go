// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// profiles returns what the window has merged, in canonical order: the same
// intervals give the same bytes, however they came in. It may be called again,
// and gives the same each time.
func (w *window) profiles() pprofile.Profiles {
	e := newEmitter(w)
	return e.emit(e.sorted, w.bases[""])
}

// emitter writes what a window has merged, which must not change meanwhile.
type emitter struct {
	w           *window
	sorted      []*resource            // all, by key
	byPartition map[string][]*resource // in that order
	canonical   *dictionary.Canonical
	resources   []emittedResource
	attribute   []int32
	kept        []sample
	orders      []order
	ordered     []sample
	parts       []int64
	positions   []int32
	content     []byte
}

type emittedResource struct {
	*resource
	scopes []*scope // in the order of the output
}

func newEmitter(w *window) *emitter {
	e := &emitter{w: w, byPartition: map[string][]*resource{}}
	for _, key := range slices.Sorted(maps.Keys(w.resources)) {
		r := w.resources[key]
		e.sorted = append(e.sorted, r)
		e.byPartition[r.partition] = append(e.byPartition[r.partition], r)
	}
	return e
}

// partition returns the Profiles of one partition, with a dictionary of their own.
func (e *emitter) partition(key string) pprofile.Profiles {
	return e.emit(e.byPartition[key], e.w.bases[key])
}

// emit writes resources, which are sorted, with rebased mappings where bases says.
func (e *emitter) emit(resources []*resource, bases map[int32]uint64) pprofile.Profiles {
	if e.canonical == nil {
		e.canonical = dictionary.NewCanonical(e.w.tables)
	} else {
		e.canonical.Reset()
	}
	e.resources = e.resources[:0]
	for _, r := range resources {
		to := emittedResource{r, scopesOf(r)}
		for _, s := range to.scopes {
			e.use(s)
		}
		e.resources = append(e.resources, to)
	}
	e.canonical.Rank()
	pd := pprofile.NewProfiles()
	for _, r := range e.resources {
		rp := pd.ResourceProfiles().AppendEmpty()
		rp.Resource().SetDroppedAttributesCount(r.resource.resource.DroppedAttributesCount())
		r.entities.copyTo(rp.Resource())
		e.w.tables.CopyMap(rp.Resource().Attributes(), r.resource.resource.Attributes())
		rp.SetSchemaUrl(r.schemaURL)
		for _, s := range r.scopes {
			e.emitScope(rp.ScopeProfiles().AppendEmpty(), s)
		}
	}
	tables := sha256.New()
	e.canonical.Write(pd.Dictionary(), tables)
	if len(bases) > 0 {
		e.canonical.Rebase(pd.Dictionary(), bases, e.w.settings.coarsening.Granularity)
		for _, m := range pd.Dictionary().MappingTable().All() {
			tables.Write(binary.BigEndian.AppendUint64(nil, m.MemoryStart()))
		}
	}
	e.setIDs(pd, tables.Sum(nil))
	if len(e.w.partitions) < 2 {
		// What takes memory is not needed while pd is passed on.
		*e = emitter{w: e.w, sorted: e.sorted, byPartition: e.byPartition}
	}
	return pd
}

// scopesOf orders the scopes of a resource: what had the first place in its
// ScopeProfiles first, readings by time, then by content. Those of which only the
// last readings count are added up where their resources have become one.
func scopesOf(r *resource) []*scope {
	var scopes []*scope
	latest := map[string][]*scope{} // by content
	for _, key := range slices.Sorted(maps.Keys(r.scopes)) {
		s := r.scopes[key]
		if s.latest == nil {
			scopes = append(scopes, s)
		} else {
			latest[s.content] = append(latest[s.content], s)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(latest)) {
		scopes = append(scopes, addedUp(latest[key]))
	}
	slices.SortStableFunc(scopes, func(a, b *scope) int {
		return cmp.Or(cmp.Compare(a.place(), b.place()), cmp.Compare(a.readingTime(), b.readingTime()))
	})
	return scopes
}

// place is the least place of a Profile in s.
func (s *scope) place() int {
	least := math.MaxInt
	for _, series := range s.series {
		least = min(least, series.place)
	}
	return least
}

// readingTime is the earliest time of the readings in s, 0 where it has none.
func (s *scope) readingTime() uint64 {
	time := uint64(0)
	for key := range s.series {
		if key.time != 0 && (time == 0 || key.time < time) {
			time = key.time
		}
	}
	return time
}

// use tells the dictionary what the output refers to.
func (e *emitter) use(s *scope) {
	c := e.canonical
	for _, series := range s.series {
		for _, v := range series.verbatim.samples {
			c.UseSample(v.stack, v.set, v.link)
		}
		for _, kept := range e.keep(s, series) {
			c.UseSample(kept.stack, kept.set, kept.link)
		}
	}
	for key := range s.series {
		c.UseString(key.sampleType)
		c.UseString(key.sampleUnit)
		c.UseString(key.periodType)
		c.UseString(key.periodUnit)
		c.UseSet(key.attributes)
	}
}

// sample is a sample to be written: its identity, its row and, of a series of
// values, its position in the column.
type sample struct{ row, position, stack, set, link int32 }

// keep returns the samples of series that are not left out for being zero, in
// memory that the next call overwrites.
func (e *emitter) keep(s *scope, series *series) []sample {
	e.kept = e.kept[:0]
	add := func(row, position int32) {
		stack, set, link := s.family.samples.Identity(row)
		e.kept = append(e.kept, sample{row, position, stack, set, link})
	}
	if series.key.shape == shapeValues {
		for i, row := range series.column.rows {
			if !e.w.settings.dropZeroSamples || !series.column.isZero(int32(i)) {
				add(row, int32(i))
			}
		}
		return e.kept
	}
	for _, event := range series.events {
		add(event.row, 0)
	}
	slices.SortFunc(e.kept, func(a, b sample) int { return cmp.Compare(a.row, b.row) })
	e.kept = slices.Compact(e.kept)
	return e.kept
}

func (e *emitter) emitScope(sp pprofile.ScopeProfiles, s *scope) {
	s.scope.CopyTo(sp.Scope())
	sp.Scope().Attributes().Clear()
	e.w.tables.CopyMap(sp.Scope().Attributes(), s.scope.Attributes())
	sp.SetSchemaUrl(s.schemaURL)

	for _, series := range slices.SortedFunc(maps.Values(s.series), e.compareSeries) {
		p := sp.Profiles().AppendEmpty()
		e.emitHeader(p, series)
		if series.sources == 1 {
			p.SetProfileID(series.id)
		}
		if series.key.original != 0 {
			e.emitVerbatim(p, &series.verbatim)
			continue
		}
		kept := e.samples(s, series)
		if series.key.shape == shapeValues {
			e.emitValues(sp.Profiles(), p, series, kept)
		} else {
			e.emitEvents(p, s, series, kept)
		}
	}
}

// order is where a sample of a series is in the output: by attribute set, sum, stack
// and link, as of their ranks. at is where it is among those kept.
type order struct {
	carry, sum           int64
	set, stack, link, at int32
}

func (a order) compare(b order) int {
	switch {
	case a.set != b.set:
		return cmp.Compare(a.set, b.set)
	case a.carry != b.carry:
		return cmp.Compare(a.carry, b.carry)
	case a.sum != b.sum:
		return cmp.Compare(a.sum, b.sum)
	case a.stack != b.stack:
		return cmp.Compare(a.stack, b.stack)
	}
	return cmp.Compare(a.link, b.link)
}

// samples returns the samples of series in the order that compresses best of those
// tried: by attribute set, then value, then stack. Equal neighbours are what gzip
// finds, and sample types that are multiples of each other stay in step. The memory is
// that of the next call, too.
func (e *emitter) samples(s *scope, series *series) []sample {
	kept := e.keep(s, series)
	e.orders = e.orders[:0]
	for n, k := range kept {
		o := order{at: int32(n)}
		o.stack, o.set, o.link = e.canonical.Ranks(k.stack, k.set, k.link)
		if series.key.shape == shapeValues {
			o.carry, o.sum = series.column.sum(k.position)
		}
		e.orders = append(e.orders, o)
	}
	slices.SortFunc(e.orders, order.compare)
	e.ordered = slices.Grow(e.ordered[:0], len(kept))
	for _, o := range e.orders {
		e.ordered = append(e.ordered, kept[o.at])
	}
	return e.ordered
}

// compareSeries keeps the place that the Profiles had, the default sample type
// first, and goes by content where that does not tell.
func (e *emitter) compareSeries(a, b *series) int {
	c := e.canonical
	x, y := a.key, b.key
	return cmp.Or(
		cmp.Compare(a.place, b.place),
		c.CompareStrings(x.sampleType, y.sampleType),
		c.CompareStrings(x.sampleUnit, y.sampleUnit),
		c.CompareStrings(x.periodType, y.periodType),
		c.CompareStrings(x.periodUnit, y.periodUnit),
		cmp.Compare(x.period, y.period),
		c.CompareSets(x.attributes, y.attributes),
		cmp.Compare(x.shape, y.shape),
		cmp.Compare(x.time, y.time),
		cmp.Compare(x.duration, y.duration),
		cmp.Compare(a.format, b.format),
		bytes.Compare(a.payload, b.payload),
		bytes.Compare(a.id[:], b.id[:]),
		cmp.Compare(a.start, b.start),
		cmp.Compare(a.duration, b.duration),
		cmp.Compare(a.dropped, b.dropped),
		e.compareVerbatim(&a.verbatim, &b.verbatim),
	)
}

func (e *emitter) emitHeader(p pprofile.Profile, s *series) {
	c := e.canonical
	p.SampleType().SetTypeStrindex(c.String(s.key.sampleType))
	p.SampleType().SetUnitStrindex(c.String(s.key.sampleUnit))
	p.PeriodType().SetTypeStrindex(c.String(s.key.periodType))
	p.PeriodType().SetUnitStrindex(c.String(s.key.periodUnit))
	p.SetPeriod(s.key.period)
	start, duration := s.timeRange()
	p.SetTime(pcommon.Timestamp(start))
	p.SetDurationNano(duration)
	p.SetDroppedAttributesCount(s.dropped)
	if s.key.attributes != 0 {
		p.AttributeIndices().FromRaw(c.AppendSet(e.attribute[:0], s.key.attributes))
	}
	if s.key.original != 0 {
		p.SetOriginalPayloadFormat(s.format)
		p.OriginalPayload().FromRaw(s.payload)
	}
}

func (e *emitter) emitIdentity(to pprofile.Sample, from sample) {
	to.SetStackIndex(e.canonical.Stack(from.stack))
	to.SetLinkIndex(e.canonical.Link(from.link))
	if from.set != 0 {
		e.attribute = e.canonical.AppendSet(e.attribute[:0], from.set)
		to.AttributeIndices().FromRaw(e.attribute)
	}
}

// emitValues writes the sums of a series into p and, where one is beyond int64,
// what is left of it into further Profiles of the same header.
func (e *emitter) emitValues(profiles pprofile.ProfilesSlice, p pprofile.Profile, series *series, kept []sample) {
	var further []pprofile.Profile
	samples := p.Samples()
	samples.EnsureCapacity(len(kept))
	for _, from := range kept {
		e.parts = series.column.parts(from.position, e.parts[:0])
		for n, part := range e.parts {
			to := samples
			if n > 0 {
				if n > len(further) {
					more := profiles.AppendEmpty()
					e.emitHeader(more, series)
					further = append(further, more)
				}
				to = further[n-1].Samples()
			}
			sample := to.AppendEmpty()
			e.emitIdentity(sample, from)
			sample.Values().Append(part)
		}
	}
}

// emitEvents writes the samples with timestamps, each in the order of time.
func (e *emitter) emitEvents(p pprofile.Profile, s *scope, series *series, kept []sample) {
	// By row. Only those of kept are read, so that many series of one large family cost what
	// is in them.
	e.positions = slices.Grow(e.positions[:0], s.family.samples.Len())
	position := e.positions[:s.family.samples.Len()]
	for n, from := range kept {
		position[from.row] = int32(n)
	}
	events := slices.Clone(series.events)
	slices.SortFunc(events, func(a, b event) int {
		return cmp.Or(
			cmp.Compare(position[a.row], position[b.row]),
			cmp.Compare(a.time, b.time),
			cmp.Compare(a.value, b.value),
		)
	})
	for start := 0; start < len(events); {
		row, stop := events[start].row, start+1
		for stop < len(events) && events[stop].row == row {
			stop++
		}
		to := p.Samples().AppendEmpty()
		e.emitIdentity(to, kept[position[row]])
		to.TimestampsUnixNano().EnsureCapacity(stop - start)
		for _, event := range events[start:stop] {
			to.TimestampsUnixNano().Append(event.time)
			if series.key.shape == shapeBoth {
				to.Values().Append(event.value)
			}
		}
		start = stop
	}
}

// setIDs gives each Profile that has none an id: a hash of its canonical content.
// tables is the digest of the dictionary, which the indices refer to.
func (e *emitter) setIDs(pd pprofile.Profiles, tables []byte) {
	for i, rp := range pd.ResourceProfiles().All() {
		for j, sp := range rp.ScopeProfiles().All() {
			for k, p := range sp.Profiles().All() {
				if !p.ProfileID().IsEmpty() {
					continue
				}
				e.content = append(e.content[:0], tables...)
				e.content = e.w.tables.AppendMap(e.content, rp.Resource().Attributes())
				e.content = e.w.tables.AppendMap(e.content, sp.Scope().Attributes())
				e.appendText(rp.SchemaUrl(), sp.SchemaUrl(), sp.Scope().Name(), sp.Scope().Version())
				e.appendInts(int64(i), int64(j), int64(k))
				e.appendProfile(p)
				sum := sha256.Sum256(e.content)
				p.SetProfileID(pprofile.ProfileID(sum[:16]))
			}
		}
	}
}

func (e *emitter) appendProfile(p pprofile.Profile) {
	e.appendInts(int64(p.SampleType().TypeStrindex()), int64(p.SampleType().UnitStrindex()),
		int64(p.PeriodType().TypeStrindex()), int64(p.PeriodType().UnitStrindex()), p.Period(),
		int64(p.Time()), int64(p.DurationNano()), int64(p.DroppedAttributesCount()), int64(p.AttributeIndices().Len()))
	for _, a := range p.AttributeIndices().All() {
		e.appendInts(int64(a))
	}
	e.appendText(p.OriginalPayloadFormat(), string(p.OriginalPayload().AsRaw()))
	samples := p.Samples()
	for i := range samples.Len() {
		s := samples.At(i)
		attributes, values, times := s.AttributeIndices(), s.Values(), s.TimestampsUnixNano()
		e.appendInts(int64(s.StackIndex()), int64(s.LinkIndex()),
			int64(attributes.Len()), int64(values.Len()), int64(times.Len()))
		for n := range attributes.Len() {
			e.appendInts(int64(attributes.At(n)))
		}
		for n := range values.Len() {
			e.appendInts(values.At(n))
		}
		for n := range times.Len() {
			e.appendInts(int64(times.At(n)))
		}
	}
}

func (e *emitter) appendInts(values ...int64) {
	for _, v := range values {
		e.content = binary.AppendVarint(e.content, v)
	}
}

func (e *emitter) appendText(texts ...string) {
	for _, t := range texts {
		e.content = binary.AppendUvarint(e.content, uint64(len(t)))
		e.content = append(e.content, t...)
	}
}
