// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package parquetfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// write returns the file of the payloads.
func write(t testing.TB, maxMemory int64, payloads ...pprofile.Profiles) []byte {
	t.Helper()
	var file bytes.Buffer
	w := NewWriter(&file, maxMemory)
	for _, pd := range payloads {
		require.NoError(t, dictionary.Check(pd))
		pd, err := dictionary.ResolveStrings(pd)
		require.NoError(t, err)
		require.NoError(t, w.Add(pd))
	}
	require.NoError(t, w.Close())
	return file.Bytes()
}

func read(t testing.TB, file []byte) []Row {
	t.Helper()
	rows, err := parquet.Read[Row](bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	return rows
}

// nameOf names a frame of the independent reader.
func nameOf(f *expand.Frame) (names []string) {
	for _, line := range f.Lines {
		names = append(names, cmp.Or(line.Function, profiletest.Demangled(line.SystemName), line.Filename, "?"))
	}
	if len(names) > 0 {
		return names
	}
	switch {
	case f.Mapping.File != "":
		return []string{fmt.Sprintf("[%s] 0x%x", path.Base(f.Mapping.File), f.Address)}
	case f.Address == 0:
		return []string{"[unknown]"}
	}
	return []string{fmt.Sprintf("0x%x", f.Address)}
}

// textsOfAttributes returns the text of attributes, of which later ones win. That of a list is not certain, and is "[" here.
func textsOfAttributes(t *testing.T, lists ...[]expand.Attribute) map[string]string {
	texts := map[string]string{}
	for _, a := range slices.Concat(lists...) {
		v := pcommon.NewValueEmpty()
		switch value := a.Value.(type) {
		case []any, expand.KeyValues:
			v.SetStr("[")
		default:
			require.NoError(t, v.FromRaw(value))
		}
		texts[a.Key] = v.AsString()
	}
	return texts
}

// isPlain reports whether no value is a list, nor one with NaN, whose text is "".
func isPlain(texts map[string]string) bool {
	for _, text := range texts {
		if text == "" || strings.ContainsAny(text, "[{") {
			return false
		}
	}
	return true
}

// TestRowsHaveWhatAnIndependentReaderFinds compares random payloads with their expansion.
func TestRowsHaveWhatAnIndependentReaderFinds(t *testing.T) {
	seed, compared := profiletest.Seed(t), 0
	for round := range profiletest.Rounds(t, 60, 2000) {
		pd := profiletest.GenerateProfiles(profiletest.NewRand(seed + uint64(round)))
		expanded := profiletest.Expand(t, pd)
		var want, got []string
		for _, p := range expanded {
			for _, s := range p.Samples {
				var stack []string
				for _, f := range s.Stack {
					stack = append(stack, nameOf(f)...)
				}
				attributes, resource := textsOfAttributes(t, p.Attributes, s.Attributes), textsOfAttributes(t, p.Resource.Attributes)
				if !isPlain(attributes) || !isPlain(resource) {
					continue
				}
				trace, span, _ := strings.Cut(s.Link, "/")
				want = append(want, fmt.Sprintf("%d %q", []any{p.Time, p.Duration, p.Period, s.Sum, sorted(s.Points)}, []any{
					resource["service.name"], p.Type, p.Unit, p.PeriodType, p.PeriodUnit, stack, resource, attributes, withoutZero(trace), withoutZero(span),
				}))
			}
		}
		for _, row := range read(t, write(t, 16<<20, pd)) {
			if !isPlain(row.Attributes) || !isPlain(row.ResourceAttributes) {
				continue
			}
			assert.Equal(t, row.TimeUnixNano/1000, row.Time)
			points := make([]expand.Point, len(row.Timestamps))
			for i, at := range row.Timestamps {
				points[i] = expand.Point{Timestamp: uint64(at), Value: row.Values[i]}
			}
			got = append(got, fmt.Sprintf("%d %q", []any{row.TimeUnixNano, row.DurationNano, row.Period, row.Value, sorted(points)}, []any{
				row.Service, row.SampleType, row.Unit, row.PeriodType, row.PeriodUnit, row.Stack, row.ResourceAttributes, row.Attributes, row.TraceID, row.SpanID,
			}))
		}
		require.ElementsMatch(t, want, got, "seed %d", seed+uint64(round))
		compared += len(want)
	}
	assert.Greater(t, compared, 100)
}

// withoutZero returns the digits of an ID, "" if all are 0.
func withoutZero(id string) string {
	if strings.Trim(id, "0") == "" {
		return ""
	}
	return id
}

func sorted(points []expand.Point) []expand.Point {
	return slices.SortedFunc(slices.Values(points), expand.Point.Compare)
}

// Index 0 of an empty table means the zero value.
func TestTablesMayBeEmpty(t *testing.T) {
	pd := pprofile.NewProfiles()
	sample := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples().AppendEmpty()
	sample.Values().Append(5)
	sample.AttributeIndices().Append(0)
	rows := read(t, write(t, 16<<20, pd))
	assert.Len(t, rows, 1)
	assert.Empty(t, rows[0].Stack)

	stacks := pd.Dictionary().StackTable()
	stacks.RemoveIf(func(pprofile.Stack) bool { return true })
	stacks.AppendEmpty().LocationIndices().Append(0)
	pd.Dictionary().LocationTable().RemoveIf(func(pprofile.Location) bool { return true })
	assert.Equal(t, []string{"[unknown]"}, read(t, write(t, 16<<20, pd))[0].Stack)

	pd.Dictionary().LocationTable().At(0).Lines().AppendEmpty()
	pd.Dictionary().FunctionTable().RemoveIf(func(pprofile.Function) bool { return true })
	assert.Equal(t, []string{"?"}, read(t, write(t, 16<<20, pd))[0].Stack)
}

func TestValuesBeyondInt64AreTheLargest(t *testing.T) {
	pd := profiletest.OneOfEach()
	p := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	p.SetTime(math.MaxUint64)
	p.SetDurationNano(math.MaxUint64)
	s := p.Samples().At(0)
	s.Values().FromRaw([]int64{math.MaxInt64, 1})
	s.TimestampsUnixNano().FromRaw([]uint64{1, math.MaxUint64})
	row := read(t, write(t, 16<<20, pd))[0]
	assert.EqualValues(t, math.MaxInt64, row.Value)
	assert.EqualValues(t, math.MaxInt64, row.TimeUnixNano)
	assert.EqualValues(t, math.MaxInt64/1000, row.Time)
	assert.EqualValues(t, math.MaxInt64, row.DurationNano)
	assert.Equal(t, []int64{1, math.MaxInt64}, row.Timestamps)
	assert.Equal(t, []int64{math.MaxInt64, 1}, row.Values)
}

func TestMemoryLimitBoundsRowGroups(t *testing.T) {
	const limit, stacks = 16 << 20, 20_000
	data := write(t, limit, slices.Repeat([]pprofile.Profiles{payloadtest.ManyStacks(stacks, 0)}, 20)...)
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	require.Greater(t, len(file.RowGroups()), 1)
	var rows int64
	for _, group := range file.RowGroups() {
		rows += group.NumRows()
	}
	assert.EqualValues(t, 20*stacks, rows)
	for _, group := range file.Metadata().RowGroups {
		assert.Less(t, group.TotalCompressedSize, int64(2*limit/groupShare))
	}
}

func TestWriteErrorsReachTheCaller(t *testing.T) {
	full := errors.New("disk full")
	pd := payloadtest.ManyStacks(20_000, 0)
	for _, room := range []int{0, 3, 5000, 100_000} {
		w := NewWriter(&limited{room: room, err: full}, 16<<20)
		var err error
		for range 20 {
			err = cmp.Or(err, w.Add(pd))
		}
		if err == nil {
			err = w.Close()
		}
		require.ErrorIs(t, err, full, "room for %d bytes", room)
	}
}

// limited has room for a number of bytes.
type limited struct {
	room int
	err  error
}

func (l *limited) Write(data []byte) (int, error) {
	if len(data) > l.room {
		return 0, l.err
	}
	l.room -= len(data)
	return len(data), nil
}
