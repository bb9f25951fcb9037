// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingconnector

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
)

// Labels and attributes that Splunk's agents set, and the label from which pproftranslator reads the time of a
// sample in nanoseconds.
const (
	labelTime      = "source.event.time"   // milliseconds since 1970
	labelPeriod    = "source.event.period" // milliseconds
	labelEvent     = "source.event.name"
	labelTraceID   = "trace_id"
	labelSpanID    = "span_id"
	labelTimestamp = "end_timestamp_ns"
)

const nanosecondsPerMillisecond int64 = 1_000_000

// nanoseconds converts milliseconds, which are 0 if they are out of range.
func nanoseconds(milliseconds int64) int64 {
	if milliseconds <= 0 || milliseconds > math.MaxInt64/nanosecondsPerMillisecond {
		return 0
	}
	return milliseconds * nanosecondsPerMillisecond
}

// moment is when a sample was taken, and the period that it stands for, in nanoseconds; 0 is unknown.
type moment struct{ at, period int64 }

// completePprof completes the pprof message of a record: trace_id and span_id get their leading zeros, which
// Python's agent leaves out, and times and periods are no labels any more. memoryOfPprof bounds its memory.
func completePprof(data []byte, wall, timestamps bool) ([]byte, error) {
	p, err := profile.ParseUncompressed(data)
	if err != nil {
		return nil, err
	}
	moments := make([]moment, len(p.Sample))
	for i, s := range p.Sample {
		if len(p.SampleType) == 0 && len(s.Value) > 0 {
			return nil, fmt.Errorf("sample %d: has values, but the message has no sample types", i)
		}
		moments[i] = moment{at: nanoseconds(takeNumber(s, labelTime)), period: nanoseconds(takeNumber(s, labelPeriod))}
		padID(s, labelTraceID, 32)
		padID(s, labelSpanID, 16)
	}
	return encode(p, moments, wall, timestamps)
}

// takeNumber removes a label of a sample and returns its number.
func takeNumber(s *profile.Sample, key string) (number int64) {
	for _, number = range s.NumLabel[key] {
	}
	delete(s.NumLabel, key)
	delete(s.NumUnit, key)
	return number
}

// padID adds the leading zeros that a hexadecimal ID lacks. Python's agent prints at least half of the digits.
func padID(s *profile.Sample, key string, digits int) {
	for i, id := range s.Label[key] {
		if len(id) >= digits/2 && len(id) < digits && strings.Trim(id, "0123456789abcdef") == "" {
			s.Label[key][i] = strings.Repeat("0", digits-len(id)) + id
		}
	}
}

// encode returns the message of p with the moments of its samples. If p has no sample types, each sample gets the
// value 1, samples/count, and if it stands for wall time and the period is known also that, wall/nanoseconds.
func encode(p *profile.Profile, moments []moment, wall, timestamps bool) ([]byte, error) {
	var first, last, period int64
	samePeriod := true
	for i, m := range moments {
		if m.at > 0 && (first == 0 || m.at < first) {
			first = m.at
		}
		last, period = max(last, m.at), max(period, m.period)
		samePeriod = samePeriod && m.period == moments[0].period
		if m.at > 0 && timestamps {
			if p.Sample[i].NumLabel == nil {
				p.Sample[i].NumLabel = map[string][]int64{}
			}
			p.Sample[i].NumLabel[labelTimestamp] = []int64{m.at}
		}
	}
	wallTime := func() *profile.ValueType { return &profile.ValueType{Type: "wall", Unit: "nanoseconds"} }
	if len(p.SampleType) == 0 {
		p.SampleType = []*profile.ValueType{{Type: "samples", Unit: "count"}}
		if wall && period > 0 {
			p.SampleType = append(p.SampleType, wallTime())
		}
		for i, m := range moments {
			p.Sample[i].Value = []int64{1, m.period}[:len(p.SampleType)]
		}
	}
	if first > 0 && p.TimeNanos <= 0 {
		// A sample stands for the time until the next one: they take one period more than they are apart. Without
		// a period, the last one takes the millisecond that its time states.
		p.TimeNanos, p.DurationNanos = first, cmp.Or(period, nanosecondsPerMillisecond)
		if last-first <= math.MaxInt64-p.DurationNanos {
			p.DurationNanos += last - first
		}
	}
	if samePeriod && period > 0 {
		p.PeriodType, p.Period = wallTime(), period
	}
	if err := p.CheckValid(); err != nil {
		return nil, err
	}
	var message bytes.Buffer
	err := p.WriteUncompressed(&message)
	return message.Bytes(), err
}

// memoryOfPprof returns how many bytes completePprof takes at most, including its result. The constants are
// measured: google/pprof has three maps for the labels of a sample, and slices that grow.
func memoryOfPprof(data []byte) (total int64, err error) {
	const entry, text, label, line, number = 256, 96, 450, 200, 24
	total = 4 * int64(len(data))
	fields := wire.New(data)
	for fields.Next() {
		if fields.Type != wire.BytesType {
			continue
		}
		perNumber := int64(number)
		switch fields.Field {
		case 6: // a string
			total += text
			continue
		case 2: // a sample
			for inner := fields.Message(); inner.Next(); {
				if inner.Field == 3 {
					total += label
				}
			}
		case 4, 13: // a location, which may have many lines of two bytes, and comments
			perNumber = line / 2
		}
		total += entry
		for _, b := range fields.Bytes() {
			if b < 0x80 { // a number ends
				total += perNumber
			}
		}
	}
	if fields.Err != nil {
		return 0, fmt.Errorf("byte %d: %w", fields.At, fields.Err)
	}
	return total, nil
}
