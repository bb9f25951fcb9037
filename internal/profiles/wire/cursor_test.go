// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// everyType is a message with a field of each wire type, short and long.
func everyType() []byte {
	var m []byte
	for _, v := range []uint64{0, 1, 127, 128, 1 << 35, math.MaxUint64} {
		m = protowire.AppendVarint(protowire.AppendTag(m, 1, protowire.VarintType), v)
		m = protowire.AppendFixed64(protowire.AppendTag(m, 2, protowire.Fixed64Type), v)
		m = protowire.AppendFixed32(protowire.AppendTag(m, 3, protowire.Fixed32Type), uint32(v))
		m = protowire.AppendBytes(protowire.AppendTag(m, protowire.MaxValidNumber, protowire.BytesType), make([]byte, v%300))
	}
	return m
}

// requireSameField compares the field that c has read with the one at the start of m,
// and returns what follows that.
func requireSameField(t *testing.T, c *Cursor, m []byte) []byte {
	t.Helper()
	number, kind, n := protowire.ConsumeTag(m)
	require.Positive(t, n)
	m = m[n:]
	require.Equal(t, uint64(number), c.Field)
	require.Equal(t, uint8(kind), c.Type)
	n = protowire.ConsumeFieldValue(number, kind, m)
	require.Positive(t, n)
	switch kind {
	case protowire.VarintType:
		value, _ := protowire.ConsumeVarint(m)
		require.Equal(t, value, c.Value)
	case protowire.Fixed64Type, protowire.Fixed32Type:
		require.Equal(t, m[:n], c.Data[c.Start:c.Stop])
	case protowire.BytesType:
		content, _ := protowire.ConsumeBytes(m)
		require.Equal(t, content, c.Data[c.Start:c.Stop])
	default:
		t.Fatalf("wire type %d was accepted", kind)
	}
	return m[n:]
}

func TestNextStopsAtTheFirstError(t *testing.T) {
	for name, test := range map[string]struct {
		message []byte
		want    string
	}{
		"tag cut":       {[]byte{0x80}, ErrTruncated.Error()},
		"varint cut":    {[]byte{0x08, 0x80}, ErrTruncated.Error()},
		"varint long":   {[]byte{0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, ErrOverflow.Error()},
		"fixed64 cut":   {[]byte{0x09, 1, 2, 3}, ErrTruncated.Error()},
		"fixed32 cut":   {[]byte{0x0d, 1, 2, 3}, ErrTruncated.Error()},
		"bytes cut":     {[]byte{0x0a, 2, 1}, ErrTruncated.Error()},
		"length cut":    {[]byte{0x0a}, ErrTruncated.Error()},
		"length long":   {[]byte{0x0a, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}, ErrTruncated.Error()},
		"group":         {[]byte{0x0b, 0x0c}, "not protobuf: wire type 3"},
		"no such type":  {[]byte{0x0f, 0x00}, "not protobuf: wire type 7"},
		"second is bad": {[]byte{0x08, 1, 0x0e, 0}, "not protobuf: wire type 6"},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(test.message)
			for c.Next() {
				require.Equal(t, uint64(1), c.Value)
			}
			require.EqualError(t, c.Err, test.want)
			require.False(t, c.Next(), "an error is final")
		})
	}
}

// google/pprof accepts these, and protowire does not.
func TestNextIsAsLenientAsPprof(t *testing.T) {
	c := New([]byte{0x00, 5, 0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0x7f})
	require.True(t, c.Next(), "field number 0")
	assert.Equal(t, uint64(5), c.Uint())
	require.True(t, c.Next(), "a tenth byte with bits over 64")
	assert.Equal(t, uint64(math.MaxUint64), c.Uint())
	require.NoError(t, c.Err)
}

func TestNestedMessages(t *testing.T) {
	inner := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), math.MaxUint64)
	m := protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), inner)
	m = protowire.AppendVarint(protowire.AppendTag(m, 5, protowire.VarintType), 9)
	c := New(m)
	require.True(t, c.Next())
	assert.Equal(t, inner, c.Bytes())
	nested := c.Message()
	require.True(t, nested.Next())
	assert.Equal(t, int64(-1), int64(nested.Uint()))
	require.False(t, nested.Next())
	require.NoError(t, nested.Err)
	require.True(t, c.Next())
	assert.Empty(t, c.Bytes())
	require.EqualError(t, c.Err, "wire type is 0, not length-delimited")
	empty := c.Message()
	require.False(t, empty.Next(), "a message cannot be entered after an error")

	c = New(m)
	require.True(t, c.Next())
	c.Uint()
	require.EqualError(t, c.Err, "wire type is 2, not varint")
}

func TestAppendRepeated(t *testing.T) {
	var packed []byte
	for _, v := range []uint64{1, 300, math.MaxUint64} {
		packed = protowire.AppendVarint(packed, v)
	}
	m := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), packed)
	m = protowire.AppendVarint(protowire.AppendTag(m, 1, protowire.VarintType), 7)
	m = protowire.AppendBytes(protowire.AppendTag(m, 1, protowire.BytesType), []byte{2, 0x80})
	c := New(m)
	require.True(t, c.Next())
	assert.Equal(t, []uint64{1, 300, math.MaxUint64}, c.AppendRepeated(nil, 3))
	assert.Equal(t, []uint64{1, 300}, c.AppendRepeated(nil, 1), "one more than the limit, so that the caller sees it")
	require.True(t, c.Next())
	assert.Equal(t, []uint64{1, 7}, c.AppendRepeated([]uint64{1}, 9))
	assert.Equal(t, 1, c.CountRepeated())
	require.True(t, c.Next())
	c.AppendRepeated(nil, 9)
	require.ErrorIs(t, c.Err, ErrTruncated)
}

// TestAppendRepeatedReadsVarintsOfEachLength: a value of each length comes after one of each other.
func TestAppendRepeatedReadsVarintsOfEachLength(t *testing.T) {
	var packed []byte
	var want []uint64
	for first := range 10 {
		for second := range 10 {
			for _, v := range []uint64{1 << (7 * first), 1<<(7*second) + 1} {
				packed, want = protowire.AppendVarint(packed, v), append(want, v)
			}
		}
	}
	for cut := range packed {
		c := New(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), packed[:cut]))
		require.True(t, c.Next())
		got := c.AppendRepeated(nil, len(want))
		if packed[max(0, cut-1)] >= 0x80 {
			require.ErrorIs(t, c.Err, ErrTruncated)
			got = got[:len(got)-1]
		} else {
			require.NoError(t, c.Err)
			require.Equal(t, len(got), c.CountRepeated())
		}
		require.Equal(t, append([]uint64(nil), want[:len(got)]...), got)
	}
}

// requireScalarsAsNext: Scalars, which leaves the rest to Next, and Next see together what Next alone sees.
func requireScalarsAsNext(t *testing.T, m []byte) {
	t.Helper()
	last := func(scalars bool) ([4]uint64, error) {
		var values [4]uint64
		c := New(m)
		if scalars {
			c.Scalars(values[:])
		}
		for c.Next() {
			if c.Type == VarintType && c.Field < uint64(len(values)) {
				values[c.Field] = c.Value
			}
		}
		return values, c.Err
	}
	want, wantErr := last(false)
	got, err := last(true)
	require.Equal(t, want, got)
	require.Equal(t, wantErr, err)
}

// Whatever protowire reads, a Cursor reads equally.
func FuzzCursor(f *testing.F) {
	f.Add(everyType())
	f.Add([]byte{0x08, 0x80, 0x01, 0x12, 2, 1, 2, 0x1d, 1, 2, 3, 4})
	f.Add([]byte{0x00, 0x05, 0x0b, 0x0c})
	for _, m := range [][]byte{
		{}, {0x08}, {0x08, 1}, {0x08, 0x80}, {0x08, 0x80, 1, 0x10, 2, 0x08, 3}, {0x20, 1, 0x08, 2}, {0x08, 1, 0x0a, 1, 9, 0x10, 3},
		{0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0x10, 1},
	} {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, m []byte) {
		requireScalarsAsNext(t, m)
		c := New(m)
		for rest := m; c.Next(); rest = m[c.At:] {
			if _, _, n := protowire.ConsumeField(rest); n < 0 {
				continue // field number 0, or a varint with bits to spare
			}
			requireSameField(t, &c, rest)
			require.LessOrEqual(t, c.At, len(m))
		}
		if c.Err == nil {
			require.Equal(t, len(m), c.At)
			return
		}
		for rest := m; len(rest) > 0; {
			number, kind, n := protowire.ConsumeField(rest)
			if n < 0 || kind == protowire.StartGroupType {
				return
			}
			require.Positive(t, number)
			rest = rest[n:]
		}
		t.Fatalf("protowire reads what a Cursor does not: %v", c.Err)
	})
}

// NextOf reads the fields with a number that Next reads, short and long, and enters them as Message does.
func TestNextOfEntersTheFieldsOfNext(t *testing.T) {
	var m []byte
	for _, size := range []int{0, 1, 127, 128, 1<<14 - 1, 1 << 14, 1 << 15} {
		for _, field := range []protowire.Number{2, 5, 31} {
			m = protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), make([]byte, size))
			m = protowire.AppendVarint(protowire.AppendTag(m, field+1, protowire.VarintType), uint64(size))
		}
	}
	for _, field := range []int{2, 3, 5, 31, 32, 7} {
		for end := 0; end <= len(m); end += 1 + end/50 {
			want, got := New(m[:end]), New(m[:end])
			entered := Cursor{Data: m[:end]}
			for want.Next() {
				if want.Field == uint64(field) {
					require.True(t, got.NextOf(field, &entered))
					require.Equal(t, want.Message(), entered)
					require.Equal(t, []int{want.At, want.End}, []int{got.At, got.End})
				}
			}
			require.False(t, got.NextOf(field, &entered))
			require.Equal(t, want.Err, got.Err)
		}
	}
}

func TestSkipRunsFindsTheFieldsOfNext(t *testing.T) {
	var m []byte
	for _, field := range []protowire.Number{2, 5, 2, 2, 7, 5, 16} {
		for _, size := range []int{0, 127, 128, 1<<14 - 1, 1 << 14} {
			m = protowire.AppendBytes(protowire.AppendTag(m, field, protowire.BytesType), make([]byte, size))
		}
	}
	var want, got [16]Run
	c, skipping := New(m), New(m)
	for start := 0; c.Next(); start = c.At {
		if skipping.SkipRuns(1<<2|1<<5, &got); skipping.At <= start {
			require.True(t, skipping.Next())
			require.Equal(t, c, skipping)
		} else if c.Field < 16 {
			want[c.Field].Add(start, c.At)
		}
	}
	require.NotZero(t, want[2].Count*want[5].Count)
	require.Equal(t, want, got)
}
