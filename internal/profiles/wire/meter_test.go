// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func TestMeterAddsUpAllMessages(t *testing.T) {
	for seed := range uint64(50) {
		data := profiletest.Proto(t, profiletest.GenerateProfiles(profiletest.NewRand(seed)))
		for _, step := range []int{1, 7, len(data)} {
			var m wire.Meter
			for chunk := range slices.Chunk(data, step) {
				n, err := m.Write(chunk)
				require.NoError(t, err)
				require.Equal(t, len(chunk), n)
			}
			assert.Equal(t, wire.Recursive(data), m.Size, "seed %d, %d bytes at a time", seed, step)
		}
	}
}

func TestMeterStopsAtItsLimit(t *testing.T) {
	var profile []byte
	for range 1000 {
		profile = append(profile, 2<<3|wire.BytesType, 0) // an empty sample
	}
	data := nest(profile, 1, 2, 2) // in resource, scope and profile
	m := wire.Meter{Limit: 60_000}
	_, err := m.Write(data)
	require.ErrorIs(t, err, wire.ErrLimit)
	assert.Less(t, m.Size, int64(61_000))
	_, err = m.Write(data)
	require.ErrorIs(t, err, wire.ErrLimit, "and stays there")

	m = wire.Meter{Limit: 200_000}
	_, err = m.Write(data)
	require.NoError(t, err)

	m = wire.Meter{Limit: 10_000}
	_, err = m.Write(bytes.Repeat([]byte{9<<3 | wire.VarintType, 1}, 6000))
	require.ErrorIs(t, err, wire.ErrLimit, "of fields that pdata leaves out")
}

// nest puts content into fields, the innermost first in the list being the outermost.
func nest(content []byte, fields ...protowire.Number) []byte {
	for _, field := range slices.Backward(fields) {
		content = protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), content)
	}
	return content
}

// Wire types of groups, which OTLP does not have.
const (
	startGroup = 3
	endGroup   = 4
)

// deep is a resource whose attribute nests this many lists. first is the tag of the outermost.
func deep(lists int, first ...byte) []byte {
	var value []byte
	for range lists - 1 {
		value = nest(value, 5, 1) // value -> list -> value
	}
	value = protowire.AppendBytes(first, nest(value, 1))
	return nest(value, 1, 1, 1, 2) // message -> resource profiles -> resource -> attribute -> value
}

func TestMeterRejectsDeepValues(t *testing.T) {
	const list = 5<<3 | wire.BytesType
	for name, test := range map[string]struct {
		data []byte
		want error
	}{
		"64 lists":                          {deep(64, list), nil},
		"65 lists":                          {deep(65, list), wire.ErrTooDeep},
		"after a group":                     {deep(70, 9<<3|startGroup, 9<<3|endGroup, list), wire.ErrMalformed},
		"behind a field in a group":         {deep(70, 9<<3|startGroup, list, 1, 9<<3|wire.Fixed64Type, list), wire.ErrMalformed},
		"a field number of 33 bits":         {deep(70, protowire.AppendVarint(nil, 1<<35|list)...), wire.ErrTooDeep},
		"a tag of ten bytes":                {deep(70, 0x80|list, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0), wire.ErrTooDeep},
		"a tag of eleven bytes":             {deep(70, 0x80|list, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0), wire.ErrMalformed},
		"after a field number of 0":         {deep(70, 0, 0, list), wire.ErrMalformed},
		"after a number beyond its message": {nest(append(nest([]byte{9<<3 | wire.Fixed64Type}, 5), make([]byte, 20)...), 1, 1, 1, 2), wire.ErrMalformed},
		"after a tag beyond its message":    {nest(append(nest([]byte{0x80}, 5), make([]byte, 20)...), 1, 1, 1, 2), wire.ErrMalformed},
		"after a size beyond its message":   {nest(append(nest([]byte{1<<3 | wire.BytesType}, 5), 200, 1), 1, 1, 1, 2), wire.ErrMalformed},
		"a wire type that does not exist":   {deep(70, 9<<3|7, list), wire.ErrMalformed},
		"a message longer than that around": {append([]byte{1<<3 | wire.BytesType, 4, 1<<3 | wire.BytesType, 100}, make([]byte, 200)...), wire.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			var m wire.Meter
			_, err := m.Write(test.data)
			require.ErrorIs(t, err, test.want)
		})
	}
}

// What Check accepts can be read, whatever its size and encoding.
func TestMetersAcceptTheDepthThatCheckAccepts_E15(t *testing.T) {
	for lists, want := range map[int]error{dictionary.MaxDepth: nil, dictionary.MaxDepth + 1: wire.ErrTooDeep} {
		for kind, nest := range map[string]func(pcommon.Value) pcommon.Value{
			"arrays": func(v pcommon.Value) pcommon.Value { return v.SetEmptySlice().AppendEmpty() },
			"maps":   func(v pcommon.Value) pcommon.Value { return v.SetEmptyMap().PutEmpty("key") },
		} {
			pd := pprofile.NewProfiles()
			v := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Scope().Attributes().PutEmpty("key")
			for range lists - 1 {
				v = nest(v)
			}
			nest(v)
			assert.Equal(t, want == nil, dictionary.Check(pd) == nil, "%d %s", lists, kind)
			assert.Equal(t, want == nil, dictionary.CheckValues(pd) == nil, "%d %s", lists, kind)
			var m wire.Meter
			_, err := m.Write(profiletest.Proto(t, pd))
			require.ErrorIs(t, err, want, "%d %s", lists, kind)
			data := profiletest.JSON(t, pd)
			var json wire.JSONMeter
			_, err = json.Write(data)
			require.ErrorIs(t, err, want, "%d %s in JSON", lists, kind)
		}
	}
}

// FuzzMeter looks for messages that pdata decodes and the wire.Meter does not know, or finds smaller than they are.
func FuzzMeter(f *testing.F) {
	f.Add(profiletest.Proto(f, profiletest.GenerateProfiles(profiletest.NewRand(1))))
	f.Add(deep(70, 5<<3|wire.BytesType))
	f.Add(deep(3, 9<<3|startGroup, 9<<3|endGroup, 5<<3|wire.BytesType))
	f.Add(append([]byte{9<<3 | startGroup, 1<<3 | wire.BytesType, 1, 10<<3 | wire.BytesType}, nest(bytes.Repeat([]byte{2<<3 | wire.BytesType, 0}, 1000), 1, 2, 2)...))
	f.Add(nest(append(nest([]byte{9<<3 | wire.Fixed64Type}, 5), make([]byte, 20)...), 1, 1, 1, 2))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m, bytewise wire.Meter
		_, err := m.Write(data)
		_, _ = bytewise.Write(nil)
		for i := range data {
			if _, bytewiseErr := bytewise.Write(data[i : i+1]); bytewiseErr != nil {
				break
			}
		}
		require.Equal(t, m.Err, bytewise.Err)
		require.Equal(t, m.Size, bytewise.Size)
		pd, decodeErr := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(data)
		if decodeErr != nil {
			return
		}
		if err != nil {
			require.True(t, errors.Is(err, wire.ErrTooDeep) || hasGroup(data), err)
			return
		}
		require.GreaterOrEqual(t, m.Size, int64(pd.SampleCount())*wire.SampleSize)
		require.GreaterOrEqual(t, m.Size, int64(pd.Dictionary().StringTable().Len())*wire.Header)
		require.GreaterOrEqual(t, m.Size, int64(pd.Dictionary().StackTable().Len())*32)
	})
}

// hasGroup reports whether a tag of a group may be in data.
func hasGroup(data []byte) bool {
	return slices.ContainsFunc(data, func(b byte) bool { return b&7 == startGroup || b&7 == endGroup })
}
