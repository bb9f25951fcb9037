// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// shape is which of values and timestamps samples have. A Profile that mixes them becomes
// several.
type shape uint8

const (
	shapeValues shape = iota
	shapeTimes
	shapeBoth
	shapes
)

// mergedProfile is a merged Profile.
type mergedProfile struct {
	key   profileKey
	place int // the lowest index in their ScopeProfiles that its sources had

	sources  int
	id       pprofile.ProfileID // of the only source
	start    uint64             // nanoseconds since the epoch, 0 for unknown
	end      uint64
	duration uint64 // the longest, for when no time is known
	covered  sampletypes.Spans
	of       processSet
	dropped  uint32
	untimed  bool // some of its samples had timestamps, which were dropped
	column   column
	events   []event

	size, samples int // that the window counts for it
}

// event is a timestamp of a sample and, for shapeBoth, its value.
type event struct {
	row   int32
	time  uint64
	value int64
}

// include merges the header of t.from, or of a part of it.
func (p *mergedProfile) include(t *target) {
	from := t.from.from
	p.place = min(p.place, t.from.place)
	p.sources++
	if p.id = from.ProfileID(); t.from.division != nil {
		p.id = pprofile.ProfileID{}
	}
	p.duration = max(p.duration, t.duration)
	if start := t.start; start != 0 {
		if p.start == 0 || start < p.start {
			p.start = start
		}
		end := endOf(start, t.duration)
		p.end = max(p.end, end)
		p.covered.Add(start, end)
	}
	p.dropped += min(from.DroppedAttributesCount(), math.MaxUint32-p.dropped)
}

// length is the duration of the merged Profile: the time that its sources cover, so that its values divided by it are
// their rate. With timestamps, which must lie within it, it lasts to the last end.
func (p *mergedProfile) length() uint64 {
	switch {
	case p.start == 0:
		return p.duration
	case len(p.events) > 0:
		return p.end - p.start
	default:
		return p.covered.Length()
	}
}

// cover sets the time that p covers.
func (p *mergedProfile) cover(start, end uint64) {
	p.covered = sampletypes.Spans{}
	p.covered.Add(start, end)
}

func (p *mergedProfile) addTimes(row int32, values pcommon.Int64Slice, times pcommon.UInt64Slice) {
	for i := range times.Len() {
		e := event{row: row, time: times.At(i)}
		if values.Len() > 0 {
			e.value = values.At(i)
		}
		p.events = append(p.events, e)
	}
}

func (p *mergedProfile) retained() int {
	const eventSize = 24
	return p.column.Retained() + p.covered.Retained() + p.of.retained() + eventSize*cap(p.events)
}

// processSet has the processes of a merged Profile. The zero value has none.
type processSet struct {
	all    []processTime
	byHash map[uint64]int32 // indices in all, if they are more than few
	spans  int              // bytes of the spans of all
}

// processTime is a process, or the rest of them, in a merged Profile.
type processTime struct {
	// Row is what is known of the process, but Covered is only of the time whose intervals are not known one by one.
	processes.Row
	// span is the time of the other intervals while they leave no gap, and ends at 0 if there are none. After that, spans are
	// their times, and it is zero.
	span  sampletypes.Span
	spans *sampletypes.Spans
	// The payload and the time of the last row with gaps that was added: one source may have become several Profiles.
	payload int
	last    sampletypes.Span
}

// few processes are found without a map.
const few = 16

// Estimates of the bytes that a process takes, and an entry of byHash.
const (
	processSize    = 104
	processMapSize = 32
)

func (s *processSet) retained() int {
	return processSize*cap(s.all) + processMapSize*len(s.byHash) + s.spans
}

// add adds rows of a payload.
func (s *processSet) add(rows []processes.Row, payload int) {
	for i := range rows {
		to := s.process(rows[i].Hash)
		s.spans -= to.retained()
		to.add(&rows[i], payload)
		s.spans += to.retained()
	}
}

// addAll adds the processes of another set.
func (s *processSet) addAll(other *processSet) { s.add(other.appendRows(nil), 0) }

// process returns a process, which it adds if it is new.
func (s *processSet) process(hash uint64) *processTime {
	if s.byHash == nil {
		for i := len(s.all) - 1; i >= 0; i-- {
			if s.all[i].Hash == hash {
				return &s.all[i]
			}
		}
	} else if i, ok := s.byHash[hash]; ok {
		return &s.all[i]
	}
	s.all = append(s.all, processTime{Row: processes.Row{Hash: hash, Processes: 1}})
	n := len(s.all)
	if n > few && s.byHash == nil {
		s.byHash = make(map[uint64]int32, 2*n)
		for i := range s.all {
			s.byHash[s.all[i].Hash] = int32(i)
		}
	}
	if s.byHash != nil {
		s.byHash[hash] = int32(n - 1)
	}
	return &s.all[n-1]
}

// appendRows appends the rows of s, of all processes.
func (s *processSet) appendRows(dst []processes.Row) []processes.Row {
	for i := range s.all {
		dst = append(dst, s.all[i].row())
	}
	return dst
}

// table returns the rows of the table of s. They are in the order of their hashes, within the limit of a table.
func (s *processSet) table() []processes.Row {
	rows := s.appendRows(make([]processes.Row, 0, len(s.all)))
	slices.SortFunc(rows, func(a, b processes.Row) int { return cmp.Compare(a.Hash, b.Hash) })
	return processes.Join(rows, nil)
}

// add adds a row of the process. Rows of one payload that have gaps, and the same time, are of one source.
func (p *processTime) add(row *processes.Row, payload int) {
	time := sampletypes.Span{Start: row.Start, End: row.End}
	p.Value = sampletypes.AddSaturated(p.Value, row.Value)
	if row.Covered > 0 && row.Covered < row.End-row.Start {
		if payload != 0 && p.payload == payload && p.last == time {
			return
		}
		p.payload, p.last = payload, time
	}
	if p.Hash == processes.Rest && p.Profiles > 0 {
		p.Processes += row.Processes
	} else {
		p.Processes = row.Processes
	}
	p.Profiles += row.Profiles
	p.Include(row.Start, row.End)
	switch {
	case row.Covered == 0:
	case row.Covered < row.End-row.Start:
		p.Covered += row.Covered
	case p.spans != nil:
		p.spans.Add(row.Start, row.End)
		p.joinSpans()
	case p.span.End == 0:
		p.span = time
	case row.Start <= p.span.End && p.span.Start <= row.End:
		p.span = sampletypes.Span{Start: min(p.span.Start, row.Start), End: max(p.span.End, row.End)}
	default:
		p.spans = &sampletypes.Spans{}
		p.spans.Add(p.span.Start, p.span.End)
		p.spans.Add(row.Start, row.End)
		p.span = sampletypes.Span{}
	}
}

// maxSpans is how many spans of a process are known one by one.
const maxSpans = 64

// joinSpans keeps only the length of spans if there are too many: then the process covers at most the time from its start to
// its end.
func (p *processTime) joinSpans() {
	const spanSize = 16
	if p.spans.Retained() > 2*maxSpans*spanSize && len(p.spans.Union()) > maxSpans {
		p.Covered += p.spans.Length()
		p.spans = nil
	}
}

// row is the row of the process, with the time that it covers.
func (p *processTime) row() processes.Row {
	row := p.Row
	row.Covered += p.span.End - p.span.Start
	if p.spans != nil {
		row.Covered += p.spans.Length()
	}
	row.Covered = min(row.Covered, row.End-row.Start)
	return row
}

func (p *processTime) retained() int {
	const spansSize = 64
	if p.spans == nil {
		return 0
	}
	return spansSize + p.spans.Retained()
}

// tableWriter writes tables of processes as attributes of Profiles, of equal ones the same, and that timestamps were dropped. The zero
// value is ready for use.
type tableWriter struct {
	attributes map[string]int32 // index, by value
	key        int32            // index of the string, if there are attributes
	untimed    int32            // index of the attribute, or 0
	bytes      []byte
}

// writeAside gives each Profile what does not identify it: its table of processes, unless its resource tells as much, and that its
// timestamps were dropped. It is the last step: IDs and the order of the output do not depend on it.
func (e *emitter) writeAside(pd pprofile.Profiles) {
	e.table.attributes, e.table.untimed = nil, 0
	for i, r := range e.sorted {
		rp := pd.ResourceProfiles().At(i)
		resource := processes.HashResource(rp.Resource().Attributes())
		for j, s := range r.scopes {
			for k, p := range s.profiles {
				to := rp.ScopeProfiles().At(j).Profiles().At(k)
				e.table.write(pd.Dictionary(), to, p.of.table(), resource)
				if p.untimed {
					e.table.writeUntimed(pd.Dictionary(), to)
				}
			}
		}
	}
}

// write gives p its table of processes if that is not what its resource, with the hash resource, tells.
func (w *tableWriter) write(d pprofile.ProfilesDictionary, p pprofile.Profile, rows []processes.Row, resource uint64) {
	if len(rows) == 0 {
		return
	}
	time := uint64(p.Time())
	snapshot := sampletypes.IsSnapshot(d, p, sampletypes.SnapshotSampleTypes)
	told := processes.Single(resource, time, p.DurationNano(), snapshot)
	told.Value = rows[0].Value // readers know it from the samples
	if len(rows) == 1 && rows[0] == told {
		return
	}
	w.bytes = processes.Append(w.bytes[:0], rows, time)
	i, known := w.attributes[string(w.bytes)]
	if !known {
		i = w.append(d)
	}
	p.AttributeIndices().Append(i)
}

// writeUntimed says that p had timestamps.
func (w *tableWriter) writeUntimed(d pprofile.ProfilesDictionary, p pprofile.Profile) {
	if w.untimed == 0 {
		w.untimed = int32(d.AttributeTable().Len())
		d.StringTable().Append(attrkey.TimestampsDropped)
		to := d.AttributeTable().AppendEmpty()
		to.SetKeyStrindex(int32(d.StringTable().Len() - 1))
		to.Value().SetBool(true)
	}
	p.AttributeIndices().Append(w.untimed)
}

// append appends an attribute with the value w.bytes.
func (w *tableWriter) append(d pprofile.ProfilesDictionary) int32 {
	strings, table := d.StringTable(), d.AttributeTable()
	if w.attributes == nil {
		w.attributes = map[string]int32{}
		for w.key = 0; int(w.key) < strings.Len() && strings.At(int(w.key)) != attrkey.Processes; {
			w.key++
		}
		if int(w.key) == strings.Len() {
			strings.Append(attrkey.Processes)
		}
	}
	i := int32(table.Len())
	to := table.AppendEmpty()
	to.SetKeyStrindex(w.key)
	to.Value().SetEmptyBytes().FromRaw(w.bytes)
	w.attributes[string(w.bytes)] = i
	return i
}
