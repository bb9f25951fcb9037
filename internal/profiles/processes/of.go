// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"errors"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// Of returns the rows of a Profile: its table, or else the row of the process that its resource, with the hash resource,
// describes. The error says that its table is malformed, and was ignored. The values of the rows add up to sum, that of
// its samples: see Sum. The dictionary must be valid.
func Of(dictionary pprofile.ProfilesDictionary, resource uint64, p pprofile.Profile, sum int64) (rows []Row, malformed error) {
	if i := Find(dictionary, p); i >= 0 {
		rows, malformed = ReadAttribute(dictionary.AttributeTable().At(i), uint64(p.Time()))
	}
	if len(rows) == 0 {
		snapshot := sampletypes.IsSnapshot(dictionary, p, sampletypes.SnapshotSampleTypes)
		rows = []Row{Single(resource, uint64(p.Time()), p.DurationNano(), snapshot)}
	}
	Fit(rows, sum)
	return rows, malformed
}

// Find returns the index of the attribute that holds the table of a Profile, or -1.
func Find(dictionary pprofile.ProfilesDictionary, p pprofile.Profile) int {
	table, strings, indices := dictionary.AttributeTable(), dictionary.StringTable(), p.AttributeIndices()
	for k := range indices.Len() { // without the iterator, which takes twice as long
		i := indices.At(k)
		if uint32(i) >= uint32(table.Len()) {
			continue
		}
		if key := table.At(int(i)).KeyStrindex(); uint32(key) < uint32(strings.Len()) && strings.At(int(key)) == attrkey.Processes {
			return int(i)
		}
	}
	return -1
}

// ReadAttribute reads the table of an attribute. time is that of the Profile.
func ReadAttribute(a pprofile.KeyValueAndUnit, time uint64) ([]Row, error) {
	if a.Value().Type() != pcommon.ValueTypeBytes {
		return nil, errors.New("the table of processes is not of bytes")
	}
	return Read(a.Value().Bytes().AsRaw(), time)
}

// Single returns the row of one Profile of one process, with the value 0. A Profile without a time has no place in it.
func Single(resource, time, duration uint64, snapshot bool) Row {
	row := Row{Hash: resource, Start: time, End: time, Profiles: 1, Processes: 1}
	if time != 0 && !snapshot {
		row.End = time + min(duration, math.MaxUint64-time)
		row.Covered = row.End - row.Start
	}
	return row
}

// Sum returns the sum of the values of a Profile. A sample with timestamps alone has as many as these.
func Sum(p pprofile.Profile) (sum int64) {
	samples := p.Samples()
	for i := range samples.Len() {
		s := samples.At(i)
		values := s.Values()
		if values.Len() == 0 {
			sum = sampletypes.AddSaturated(sum, int64(s.TimestampsUnixNano().Len()))
		}
		for n := range values.Len() {
			sum = sampletypes.AddSaturated(sum, values.At(n))
		}
	}
	return sum
}

// Fit makes the values of rows add up to sum, in proportion to what they are: samples were removed since the table was
// made, or are only a part of those that it is of.
func Fit(rows []Row, sum int64) {
	total, saturated := int64(0), false
	positive := true
	for i := range rows {
		total = sampletypes.AddSaturated(total, rows[i].Value)
		saturated = saturated || total == math.MaxInt64 || total == math.MinInt64
		positive = positive && rows[i].Value >= 0
	}
	switch {
	case total == sum || len(rows) == 0:
	case len(rows) == 1:
		rows[0].Value = sum
	case saturated:
	case positive && total > 0:
		weights := make([]uint64, len(rows))
		for i := range rows {
			weights[i] = uint64(rows[i].Value) // #nosec G115 -- not negative
		}
		for i, value := range Divide(sum, weights) {
			rows[i].Value = value
		}
	default:
		rows[0].Value = sampletypes.AddSaturated(sampletypes.AddSaturated(rows[0].Value, -total), sum)
	}
}
