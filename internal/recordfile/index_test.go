// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const fileSize, limit = 300, 1 << 20

func cpu(start uint64, sum int64) Summary {
	return Summary{
		Key:   Key{Service: "checkout", Type: "cpu", SampleType: "cpu", Unit: "nanoseconds"},
		Total: Total{Start: start, Latest: start, End: start + 10, Profiles: 1, Samples: 2, Sum: SumOf(sum)},
	}
}

func heap(start uint64, sum int64) Summary {
	return Summary{
		Key:   Key{Service: "<b>\"\n", SampleType: "inuse_space", Snapshot: math.MaxUint64},
		Total: Total{Timestamps: true, Start: start, Latest: start, End: start, Profiles: 1, Samples: 3, Sum: SumOf(sum)},
	}
}

// built returns a IndexBuilder of three records, and what these hold.
func built(t *testing.T) (*IndexBuilder, []IndexRecord) {
	t.Helper()
	records := []IndexRecord{
		{0, 100, []Summary{cpu(100, 5), heap(100, math.MaxInt64)}},
		{100, 150, []Summary{heap(math.MaxUint64, -7), cpu(110, math.MinInt64)}},
		{250, 50, []Summary{cpu(0, 1)}},
	}
	b := NewIndexBuilder(NewIndexMemory(limit))
	t.Cleanup(b.Release)
	for _, r := range records {
		b.Add(r.Offset, r.Length, r.Summaries)
	}
	return b, records
}

func encoded(t *testing.T) []byte {
	b, _ := built(t)
	data, err := b.Encode(fileSize)
	require.NoError(t, err)
	return data
}

func TestIndexRoundTrip(t *testing.T) {
	b, want := built(t)
	data, err := b.Encode(fileSize)
	require.NoError(t, err)
	assert.Equal(t, 5, bytes.Count(data, lineEnd))
	x, err := ParseIndex(data, fileSize, limit)
	require.NoError(t, err)
	require.Len(t, x.Totals, 2)
	ofCPU, ofHeap := x.Totals[0], x.Totals[1]
	assert.Equal(t, Summary{cpu(0, 0).Key, Total{Start: 0, Latest: 110, End: 120, Profiles: 3, Samples: 6, Sum: SumOf(math.MinInt64 + 6)}}, ofCPU)
	assert.Equal(t, Summary{
		heap(0, 0).Key, Total{Timestamps: true, Start: 100, Latest: math.MaxUint64, End: math.MaxUint64, Profiles: 2, Samples: 3, Sum: SumOf(-7)},
	}, ofHeap)
	got, err := x.Records()
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

func TestLatestSnapshotCounts(t *testing.T) {
	total := heap(5, 1)
	for _, s := range []Summary{heap(4, 2), heap(5, 3), heap(1, 9)} {
		total.Add(&s)
	}
	assert.Equal(t, SumOf(3), total.Sum, "of equally late ones the last")
	assert.Equal(t, 4, total.Profiles)
	part := heap(5, 10)
	total.AddSibling(&part)
	assert.Equal(t, SumOf(13), total.Sum, "parts of one snapshot")
	assert.Equal(t, 6, total.Samples)
	assert.EqualValues(t, 1, total.Start)
}

// TestDamagedIndexIsRejected_V1 cuts an index at each byte, and changes each byte.
func TestDamagedIndexIsRejected_V1(t *testing.T) {
	data := encoded(t)
	for n := range data {
		_, err := ParseIndex(data[:n], fileSize, limit)
		require.Error(t, err, "%d bytes", n)
	}
	first := bytes.IndexByte(data, '\n')
	for i := range data {
		damaged := bytes.Clone(data)
		damaged[i] ^= 1
		x, err := ParseIndex(damaged, fileSize, limit)
		if i > first || err != nil {
			require.Error(t, err, "byte %d", i)
			continue
		}
		_, err = x.Records() // a changed name in the first line may be read as it was
		require.NoError(t, err)
	}
}

func TestForeignIndexIsRejected_V1(t *testing.T) {
	data := encoded(t)
	for name, test := range map[string]struct {
		data []byte
		size int64
		want string
	}{
		"another version":  {bytes.Replace(data, []byte(`"version":2`), []byte(`"version":1`), 1), fileSize, "version is 1: must be 2"},
		"a grown file":     {data, fileSize + 1, "size is 300: must be that of the file, 301"},
		"empty":            {nil, fileSize, "first line"},
		"another language": {[]byte("offset,length\n0,1\n"), fileSize, "first line"},
		"zeros":            {make([]byte, 4096), fileSize, "first line"},
	} {
		_, err := ParseIndex(test.data, test.size, limit)
		require.ErrorContains(t, err, test.want, name)
	}
}

// withHead adds a first line with the right checksum.
func withHead(lines ...string) []byte {
	rest := strings.Join(lines, "\n")
	return fmt.Appendf(nil, "{\"version\":2,\"size\":%d,\"checksum\":%d}\n%s", fileSize, checksum([]byte(rest)), rest)
}

func TestMalformedIndexIsRejected_V1(t *testing.T) {
	const indexTotals = `{"series":[{"service":"a","start":5,"latest":5,"end":5,"profiles":1,"samples":1,"sum":1}]}`
	record := func(offset, length int64, series string) string {
		return fmt.Sprintf(`{"offset":%d,"length":%d,"series":[%s]}`, offset, length, series)
	}
	x, err := ParseIndex(withHead(indexTotals, record(0, fileSize, "[0,5,0,0,1,1,1]"), ""), fileSize, limit)
	require.NoError(t, err)
	_, err = x.Records()
	require.NoError(t, err)

	for _, second := range []string{
		``, `[]`, `null`, `null 1`, `{}`, `{"series":[{"profiles":-1}]}`, `{"series":[{"profiles":1,"samples":-1}]}`, `{"series":[{"profiles":0}]}`,
		`{"series":[{"start":9,"latest":8,"end":9,"profiles":1}]}`, `{"series":[{"start":1,"latest":8,"end":7,"profiles":1}]}`,
		`{"series":[{"profiles":99999999999999999999}]}`, `{"series":[{"start":-1,"profiles":1}]}`, `{"series":[{"sum":1e99,"profiles":1}]}`,
		`{"series":[` + strings.Repeat(`{},`, limit/100) + `{}]}`,
		`{"series":` + strings.Repeat(`[`, limit) + `}`,
	} {
		_, err := ParseIndex(withHead(second), fileSize, limit)
		assert.Error(t, err, "%.80s", second)
	}
	for _, line := range []string{
		``, `x`, `[]`, ` ` + record(0, fileSize, ""), record(0, fileSize, "") + "x", record(0, fileSize, "[0,5,0,0,1,1,1]x"), record(1, fileSize-1, ""), record(0, fileSize+1, ""), record(0, math.MaxInt64, ""), record(0, 0, ""), record(0, -1, ""), record(0, 1, ""),
		record(0, fileSize, "0"), record(0, fileSize, "[]"), record(0, fileSize, "[0,5,0,0,1,1]"), record(0, fileSize, "[0,5,0,0,1,1,1,1]"),
		record(0, fileSize, "[1,5,0,0,1,1,1]"), record(0, fileSize, "[-1,5,0,0,1,1,1]"), record(0, fileSize, "[4294967296,5,0,0,1,1,1]"),
		record(0, fileSize, "[0,5,18446744073709551615,0,1,1,1]"), record(0, fileSize, "[0,5,0,18446744073709551615,1,1,1]"),
		record(0, fileSize, "[0,5,0,0,18446744073709551615,1,1]"), record(0, fileSize, "[0,5,0,0,1,18446744073709551615,1]"),
		record(0, fileSize, "[0,5,0,0,1,1,9999999999999999999999999999999999999999]"), record(0, fileSize, "[0,5,0,0,1,1,[1]]"), record(0, fileSize, `[0,5,0,0,1,1,"1"]`),
	} {
		x, err := ParseIndex(withHead(indexTotals, line, ""), fileSize, limit)
		require.NoError(t, err)
		_, err = x.Records()
		assert.Error(t, err, line)
	}
}

// A null takes 5 bytes in an index, and would take those of a Summary in memory.
func TestParseTakesNoMoreMemoryThanItsLimit_V1(t *testing.T) {
	const indexTotals = `{"series":[{"profiles":1}]}`
	for _, lines := range [][]string{
		{`{"series":[` + strings.Repeat("null,", limit) + `null]}`}, {`{"series":[` + strings.Repeat("0,", limit) + `0]}`},
		{`{"series":[` + strings.Repeat(`"",`, limit) + `""]}`}, {indexTotals, strings.Repeat("\n", limit)},
	} {
		data := withHead(lines...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		x, err := ParseIndex(data, fileSize, limit)
		if err == nil {
			_, err = x.Records()
		}
		runtime.ReadMemStats(&after)
		require.Error(t, err)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(len(data)+limit), "%.30s", lines[0])
	}
}

// TestBuilderMemoryIsBounded: the lines of records are left out first.
func TestBuilderMemoryIsBounded(t *testing.T) {
	memory := NewIndexMemory(8 << 10)
	b, other := NewIndexBuilder(memory), NewIndexBuilder(memory)
	for i := range 1000 {
		b.Add(int64(i), 1, []Summary{cpu(1, 1)})
		require.LessOrEqual(t, memory.Used(), memory.limit)
	}
	data, err := b.Encode(1000)
	require.NoError(t, err)
	x, err := ParseIndex(data, 1000, limit)
	require.NoError(t, err)
	assert.Equal(t, SumOf(1000), x.Totals[0].Sum)
	records, err := x.Records()
	require.NoError(t, err)
	assert.Equal(t, []IndexRecord{{Length: 1000, Summaries: x.Totals}}, records)

	for i := range 100 {
		s := cpu(1, 1)
		s.Service = fmt.Sprint(i)
		other.Add(int64(i), 1, []Summary{s})
		require.LessOrEqual(t, memory.Used(), memory.limit)
	}
	data, err = other.Encode(100)
	require.NoError(t, err)
	assert.Nil(t, data)
	other.Release()
	b.Release()
	assert.Zero(t, memory.Used())
}

func TestRecordWithoutSummariesLeavesNoIndex(t *testing.T) {
	b, _ := built(t)
	b.Add(300, 1, nil)
	b.Add(301, 1, []Summary{cpu(1, 1)})
	data, err := b.Encode(301)
	require.NoError(t, err)
	assert.Nil(t, data)
	assert.Zero(t, b.memory.Used())
}

// BenchmarkParse reports the time for each index of a file of 360 records of 5 series.
func BenchmarkParse(b *testing.B) {
	builder := NewIndexBuilder(NewIndexMemory(1 << 30))
	for i := range 360 {
		var of []Summary
		for k := range 5 {
			s := cpu(1_700_000_000_000_000_000+uint64(i), int64(i))
			s.SampleType = fmt.Sprint("type", k)
			of = append(of, s)
		}
		builder.Add(int64(i)*1000, 1000, of)
	}
	data, err := builder.Encode(360_000)
	require.NoError(b, err)
	b.Run("totals", func(b *testing.B) {
		for b.Loop() {
			_, err = ParseIndex(data, 360_000, 1<<30)
		}
	})
	b.Run("records", func(b *testing.B) {
		for b.Loop() {
			x, _ := ParseIndex(data, 360_000, 1<<30)
			_, err = x.Records()
		}
	})
	require.NoError(b, err)
	b.ReportMetric(float64(len(data)), "bytes")
}

func TestTotalsAreReadAsTheyWereWritten(t *testing.T) {
	full := heap(5, -3)
	full.Key = Key{Service: "Größe {[,]}", Type: "heap", SampleType: "inuse_space", Unit: "bytes", Snapshot: math.MaxUint64}
	for _, want := range [][]Summary{
		{{Total: Total{Profiles: 1}}},
		{heap(5, -3), {Key: Key{Service: `a\`, Type: `\"`, Unit: "\u2028</"}, Total: Total{Profiles: 1}}},
		{full, cpu(0, math.MinInt64), cpu(math.MaxUint64-10, math.MaxInt64), {Key: Key{Unit: "x"}, Total: Total{Latest: 1, End: 2, Profiles: 1, Samples: 2}}},
	} {
		line, err := json.Marshal(indexTotals{want})
		require.NoError(t, err)
		x, err := ParseIndex(withHead(string(line)), fileSize, limit)
		require.NoError(t, err)
		assert.Equal(t, want, x.Totals)
	}
}
