// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"golang.org/x/sync/semaphore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

const fileSize, limit = 300, 1 << 20

func cpu(start uint64, sum int64) Summary {
	return Summary{
		Key:   Key{Service: "checkout", Type: "cpu", SampleType: "cpu", Unit: "nanoseconds"},
		Total: Total{Start: start, Latest: start, End: start + 10, Covered: 8, Profiles: 1, Samples: 2, Sum: sum},
	}
}

func heap(start uint64, sum int64) Summary {
	return Summary{
		Key:   Key{Service: "<b>\"\n", SampleType: "inuse_space", Snapshot: math.MaxUint64},
		Total: Total{Timestamps: true, Start: start, Latest: start, End: start, Profiles: 1, Samples: 3, Sum: sum},
	}
}

// built returns a IndexBuilder of three records, and what these hold.
func built(t *testing.T) (*IndexBuilder, []IndexRecord) {
	t.Helper()
	records := []IndexRecord{
		{0, 100, []Summary{cpu(100, 5), heap(100, math.MaxInt64)}},
		{100, 150, []Summary{heap(math.MaxUint64, -7), cpu(110, math.MaxInt64)}},
		{250, 50, []Summary{cpu(0, 1)}},
	}
	b := NewIndexBuilder(semaphore.NewWeighted(limit))
	t.Cleanup(b.Release)
	for _, r := range records {
		b.Add(r.Offset, r.Length, r.Summaries, nil)
	}
	return b, records
}

func encoded(t *testing.T) []byte {
	b, _ := built(t)
	return b.Encode(fileSize)
}

func TestIndexRoundTrip(t *testing.T) {
	b, want := built(t)
	data := b.Encode(fileSize)
	assert.Equal(t, 7, bytes.Count(data, lineEnd))
	x, err := ParseIndex(data, fileSize, limit)
	require.NoError(t, err)
	require.Len(t, x.Totals, 2)
	ofCPU, ofHeap := x.Totals[0], x.Totals[1]
	assert.Equal(t, Summary{cpu(0, 0).Key, Total{Start: 0, Latest: 110, End: 120, Profiles: 3, Samples: 6, Sum: math.MaxInt64}}, ofCPU)
	assert.Equal(t, Summary{
		heap(0, 0).Key, Total{Timestamps: true, Start: 100, Latest: math.MaxUint64, End: math.MaxUint64, Profiles: 2, Samples: 3, Sum: -7},
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
	assert.EqualValues(t, 3, total.Sum, "of equally late ones the last")
	assert.Equal(t, 4, total.Profiles)
	part := heap(5, 10)
	total.add(&part, true)
	assert.EqualValues(t, 13, total.Sum, "parts of one snapshot")
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
	_, err := ParseIndex(data, fileSize+1, limit)
	require.ErrorContains(t, err, "size is 300: must be that of the file, 301")
	_, err = ParseIndex(bytes.Replace(data, []byte(`"version":5`), []byte(`"version":1`), 1), fileSize, limit)
	require.ErrorContains(t, err, "version is 1: must be 5")
}

// withHead adds a first line with the right checksum.
func withHead(lines ...string) []byte {
	rest := strings.Join(lines, "\n")
	return fmt.Appendf(nil, "{\"version\":5,\"size\":%d,\"checksum\":%d}\n%s", fileSize, crc32.Checksum([]byte(rest), castagnoli), rest)
}

func TestMalformedIndexIsRejected_V1(t *testing.T) {
	const series = `{"labels":{}}` + "\n" + `{"service":"a","start":5,"latest":5,"end":5,"profiles":1,"samples":1,"sum":1}`
	x, err := ParseIndex(withHead(series, "0 300 0 5 0 9 9 1 1 1", ""), fileSize, limit)
	require.NoError(t, err)
	_, err = x.Records()
	require.NoError(t, err)

	for _, line := range []string{
		``, `[]`, `null`, `{}`, `{}}`, `{"profiles":-1}`, `{"profiles":1,"samples":-1}`, `{"profiles":0}`,
		`{"start":9,"latest":8,"end":9,"profiles":1}`, `{"start":1,"latest":8,"end":7,"profiles":1}`,
		`{"profiles":99999999999999999999}`, `{"start":-1,"profiles":1}`, `{"sum":1e99,"profiles":1}`, `{"profiles":` + strings.Repeat(`[`, limit) + `}`,
	} {
		_, err := ParseIndex(withHead(`{"labels":{}}`, line), fileSize, limit)
		assert.Error(t, err, "%.80s", line)
	}
	for _, line := range []string{
		"", "x", "[]", " 0 300", "0 300x", "0 300 0 5 0 0 0 1 1 1x", "1 299", "0 301", "0 9223372036854775807", "0 0", "0 -1", "0 1",
		"0 300 0", "0 300 0 5 0 0 0 1 1", "0 300 0 5 0 0 0 1 1 1 1", "0 300 1 5 0 0 0 1 1 1", "0 300 -1 5 0 0 0 1 1 1", "0 300 4294967296 5 0 0 0 1 1 1",
		"0 300 0 5 -1 0 0 1 1 1", "0 300 0 5 0 -1 0 1 1 1", "0 300 0 5 0 0 -1 1 1 1", "0 300 0 5 0 9 10 1 1 1", "0 300 0 5 0 0 0 -1 1 1",
		"0 300 0 5 0 0 0 1 -1 1", "0 300 0 5 0 0 0 1 1 9999999999999999999", `0 300 0 5 0 0 0 1 1 "1"`,
	} {
		x, err := ParseIndex(withHead(series, line, ""), fileSize, limit)
		require.NoError(t, err)
		_, err = x.Records()
		assert.Error(t, err, line)
	}
}

// A short line would take the memory of a Summary or a record.
func TestParseTakesNoMoreMemoryThanItsLimit_V1(t *testing.T) {
	const series = `{"profiles":1}`
	for _, lines := range [][]string{
		{strings.Repeat(series+"\n", limit/10)}, {series, strings.Repeat("\n", limit)}, {series, "0 300" + strings.Repeat(" 0", limit)},
	} {
		data := withHead(lines...)
		var err error
		allocated := profiletest.AllocatedBy(func() {
			var x *Index
			if x, err = ParseIndex(data, fileSize, limit); err == nil {
				_, err = x.Records()
			}
		})
		require.Error(t, err)
		assert.Less(t, allocated, uint64(len(data)+limit), "%.30s", lines[0])
	}
}

// TestBuilderMemoryIsBounded: an index that takes too much is left out, and frees its memory.
func TestBuilderMemoryIsBounded(t *testing.T) {
	const limit = 8 << 10
	memory := semaphore.NewWeighted(limit)
	b, other := NewIndexBuilder(memory), NewIndexBuilder(memory)
	b.Add(0, 1, []Summary{cpu(1, 1)}, nil)
	for i := range 1000 {
		s := cpu(1, 1)
		s.Service = fmt.Sprint(i % 10)
		other.Add(int64(i), 1, []Summary{s}, nil)
	}
	assert.Nil(t, other.Encode(1000))
	x, err := ParseIndex(b.Encode(1), 1, limit)
	require.NoError(t, err)
	records, err := x.Records()
	require.NoError(t, err)
	assert.Len(t, records, 1)
	assert.False(t, memory.TryAcquire(limit))
	other.Release()
	b.Release()
	assert.True(t, memory.TryAcquire(limit))
}

// labelSet has the values of a label from first on.
func labelSet(label string, first, values int) *labels.Set {
	pd := pprofile.NewProfiles()
	for i := range values {
		pd.ResourceProfiles().AppendEmpty().Resource().Attributes().PutStr(label, fmt.Sprintf("%s-value-%06d", label, first+i))
	}
	return labels.Of(pd)
}

// TestAccountEqualsWhatIsHeld_A1 merges random sets of labels in any order. Labels with too many values lose them, so that what is held
// also falls. Whatever happens, the account is what the indexes hold, and all of it is given back.
func TestAccountEqualsWhatIsHeld_A1(t *testing.T) {
	fell, leftOut, shortened := 0, 0, 0
	for seed := range uint64(profiletest.Rounds(t, 200, 10_000)) {
		r := profiletest.NewRand(seed)
		most := int64(20<<10 + r.IntN(300<<10))
		memory := semaphore.NewWeighted(most)
		builders := make([]*IndexBuilder, 1+r.IntN(4))
		for i := range builders {
			builders[i] = NewIndexBuilder(memory)
		}
		for n := range 40 {
			b := builders[r.IntN(len(builders))]
			s := cpu(uint64(n), 1)
			s.Service = fmt.Sprint(r.IntN(20))
			before := b.labels.Size()
			b.Add(int64(n), 1, []Summary{s}, labelSet(fmt.Sprint("label", r.IntN(3)), r.IntN(500), r.IntN(300)))
			if b.labels.Size() < before {
				fell++
			}
			held := int64(0)
			for _, b := range builders {
				require.Equal(t, b.held(), b.reserved)
				held += b.held()
			}
			require.True(t, memory.TryAcquire(most-held), "no more is taken than is held")
			require.False(t, memory.TryAcquire(1), "no less is taken than is held")
			memory.Release(most - held)
		}
		for _, b := range builders {
			data := b.Encode(40)
			switch {
			case data == nil:
				assert.ErrorIs(t, b.err, ErrIndexMemory)
				leftOut++
			case b.err != nil:
				_, complete := b.labels.Names()
				assert.False(t, complete)
				assert.NotEmpty(t, b.totals)
				shortened++
			}
			b.Release()
		}
		require.True(t, memory.TryAcquire(most))
	}
	assert.Positive(t, fell)
	assert.Positive(t, shortened, "indexes without labels")
}

// TestAPanicOfAnIndexLeavesItOut_A1: the record is safe, and the index is a cache.
func TestAPanicOfAnIndexLeavesItOut_A1(t *testing.T) {
	memory := semaphore.NewWeighted(limit)
	b := NewIndexBuilder(memory)
	b.Add(0, 1, []Summary{cpu(1, 1)}, nil)
	b.totals = nil // places lead nowhere
	b.Add(1, 1, []Summary{cpu(2, 1)}, nil)
	assert.Nil(t, b.Encode(2))
	var panicked *panics.Error
	require.ErrorAs(t, b.err, &panicked)
	assert.Contains(t, string(panicked.Stack), "IndexBuilder")
	b.Release()
	assert.True(t, memory.TryAcquire(limit))
}
