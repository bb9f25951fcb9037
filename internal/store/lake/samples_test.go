// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// write returns the file of the payloads.
func write(t testing.TB, maxMemory int64, payloads ...pprofile.Profiles) []byte {
	t.Helper()
	var file bytes.Buffer
	w := NewSamples(&file, maxMemory)
	for _, pd := range payloads {
		require.NoError(t, dictionary.Check(pd))
		pd, err := dictionary.ResolveStrings(pd)
		require.NoError(t, err)
		require.NoError(t, w.Add(pd))
	}
	require.NoError(t, w.Close())
	return file.Bytes()
}

func read(t testing.TB, file []byte) []Sample {
	t.Helper()
	rows, err := parquet.Read[Sample](bytes.NewReader(file), int64(len(file)))
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

// frame is what the lists beside a stack have of a function.
type frame struct {
	file    string
	line    int64
	inlined bool
	buildID string
}

func aboutOf(t *testing.T, f *expand.Frame, names int) []frame {
	about, mapping := make([]frame, names), textsOfAttributes(t, f.Mapping.Attributes)
	for i := range about {
		about[i].buildID = cmp.Or(mapping["process.executable.build_id.gnu"], mapping["process.executable.build_id.go"], mapping["process.executable.build_id.htlhash"])
	}
	for i, line := range f.Lines {
		about[i].file, about[i].line, about[i].inlined = line.Filename, line.Line, i < len(f.Lines)-1
	}
	return about
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
				var about []frame
				for _, f := range s.Stack {
					names := nameOf(f)
					stack, about = append(stack, names...), append(about, aboutOf(t, f, len(names))...)
				}
				attributes, resource := textsOfAttributes(t, p.Attributes, s.Attributes), textsOfAttributes(t, p.Resource.Attributes)
				if !isPlain(attributes) || !isPlain(resource) {
					continue
				}
				trace, span, _ := strings.Cut(s.Link, "/")
				want = append(want, fmt.Sprintf("%d %v %q", []any{p.Time, p.Duration, p.Period, s.Sum, sorted(s.Points)}, about, []any{
					attributes[attrkey.Temporality], resource["service.name"], p.Type, p.Unit, p.PeriodType, p.PeriodUnit, stack, resource, attributes, withoutZero(trace), withoutZero(span),
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
			var about []frame
			if len(row.Stack) > 0 {
				assert.Equal(t, row.Stack[0], row.Function)
			}
			for i := range row.Stack {
				about = append(about, frame{row.Files[i], row.Lines[i], row.Inlined[i], row.BuildIDs[i]})
			}
			got = append(got, fmt.Sprintf("%d %v %q", []any{row.TimeUnixNano, row.DurationNano, row.Period, row.Value, sorted(points)}, about, []any{
				row.Temporality, row.Service, row.SampleType, row.Unit, row.PeriodType, row.PeriodUnit, row.Stack, row.ResourceAttributes, row.Attributes, row.TraceID, row.SpanID,
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

// TestFilesStateTheirTableAndVersion: the columns are those that docs/sql.md lists, in the order of both.
func TestFilesStateTheirTableAndVersion(t *testing.T) {
	var samples, processes bytes.Buffer
	require.NoError(t, NewSamples(&samples, 1<<20).Close())
	require.NoError(t, newProcesses(&processes, 1<<20, newCodec()).Close())
	page, err := os.ReadFile(filepath.FromSlash("../../../docs/sql.md"))
	require.NoError(t, err)
	for table, data := range map[string][]byte{SamplesDir: samples.Bytes(), ProcessesDir: processes.Bytes()} {
		file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		for key, want := range map[string]string{TableKey: table, VersionKey: Version} {
			value, found := file.Lookup(key)
			assert.True(t, found, key)
			assert.Equal(t, want, value, key)
		}
		_, section, found := strings.Cut(string(page), "### "+table+"\n")
		require.True(t, found, table)
		section, _, _ = strings.Cut(section, "\n#")
		var documented, columns []string
		for line := range strings.Lines(section) {
			if cell, isRow := strings.CutPrefix(line, "| `"); isRow {
				cell, _, _ = strings.Cut(cell, " |")
				documented = append(documented, strings.Split(strings.Trim(cell, "`"), "`, `")...)
			}
		}
		for _, column := range file.Schema().Columns() {
			if !slices.Contains(columns, column[0]) {
				columns = append(columns, column[0])
			}
		}
		assert.Equal(t, columns, documented, table)
	}
}

func TestMemoryLimitBoundsRowGroups(t *testing.T) {
	const limit, stacks = 256 << 10, 5_000
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
	for _, room := range []int{0, 3, 5000, 30_000} {
		w := NewSamples(&limited{room: room, err: full}, 1<<20)
		var err error
		for range 4 {
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
