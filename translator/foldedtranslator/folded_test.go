// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package foldedtranslator_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/foldedtranslator"
)

func unmarshal(t *testing.T, text string) pprofile.Profiles {
	t.Helper()
	pd, err := (&foldedtranslator.Unmarshaler{}).UnmarshalProfiles([]byte(text))
	require.NoError(t, err)
	profiletest.RequireConforms(t, pd)
	return pd
}

func TestUnmarshalReadsStacksFromTheRoot(t *testing.T) {
	expanded := profiletest.Expand(t, unmarshal(t, "main;handle;encode 42\r\n\nmain 1\nmain;handle;encode -2\n"))
	require.Len(t, expanded, 1)
	assert.Equal(t, "samples/count", expanded[0].Type+"/"+expanded[0].Unit)
	require.Len(t, expanded[0].Samples, 2)
	sample := expanded[0].Samples[0]
	assert.EqualValues(t, 40, sample.Sum.Int64(), "equal stacks are summed")
	var leafFirst []string
	for _, frame := range sample.Stack {
		leafFirst = append(leafFirst, frame.Lines[0].Function)
	}
	assert.Equal(t, []string{"encode", "handle", "main"}, leafFirst)
}

func TestUnmarshalNamesTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"a;b 1\nno value\n":              `line 2: value is "value": must be a whole number`,
		"a;b\n":                          `line 1: "a;b": must be a stack, a space and a value`,
		"a 9223372036854775807\na 1\n":   "line 2: the sum of the values of this stack overflows int64",
		"a;b 1.5\n":                      `line 1: value is "1.5": must be a whole number`,
		strings.Repeat("x", 5000) + "\n": `line 1: "` + strings.Repeat("x", 80) + `": must be`,
	} {
		_, err := (&foldedtranslator.Unmarshaler{}).UnmarshalProfiles([]byte(text))
		assert.ErrorContains(t, err, want)
	}
}

func TestMarshalWritesWhatUnmarshalReads(t *testing.T) {
	text := "java/util/Map;lambda$0\\x3bx;line\\x0afeed 3\nmain 7\nmain;with space 1\n"
	folded, err := foldedtranslator.Marshaler{}.MarshalProfiles(unmarshal(t, text))
	require.NoError(t, err)
	assert.Equal(t, text, string(folded))
}

func TestMarshalNamesFramesWithoutFunctionByAddress(t *testing.T) {
	pd := unmarshal(t, "a;b 1\n")
	dict := pd.Dictionary()
	dict.LocationTable().At(1).Lines().RemoveIf(func(pprofile.Line) bool { return true })
	dict.LocationTable().At(1).SetAddress(0x1f)
	dict.StringTable().Append("/usr/lib/libc.so.6")
	dict.MappingTable().AppendEmpty().SetFilenameStrindex(int32(dict.StringTable().Len() - 1))
	dict.LocationTable().At(1).SetMappingIndex(1)
	folded, err := foldedtranslator.Marshaler{}.MarshalProfiles(pd)
	require.NoError(t, err)
	assert.Equal(t, "a;[libc.so.6] 0x1f 1\n", string(folded))
}

func TestMarshalRejectsSumsThatOverflowAndSeveralSampleTypes(t *testing.T) {
	pd := unmarshal(t, "a 9223372036854775807\n")
	profiles := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	second := profiles.AppendEmpty()
	profiles.At(0).CopyTo(second)
	const want = "the sum of samples/count of a stack does not fit into 64 bits"
	_, err := foldedtranslator.Marshaler{}.MarshalProfiles(pd)
	require.ErrorContains(t, err, want)

	sample := second.Samples().At(0)
	sample.Values().FromRaw(nil)
	sample.TimestampsUnixNano().FromRaw([]uint64{1})
	_, err = foldedtranslator.Marshaler{}.MarshalProfiles(pd)
	require.ErrorContains(t, err, want, "a timestamp counts 1")

	sample.Values().FromRaw([]int64{-1})
	folded, err := foldedtranslator.Marshaler{}.MarshalProfiles(pd)
	require.NoError(t, err)
	assert.Equal(t, "a 9223372036854775806\n", string(folded))

	profiles.AppendEmpty()
	sample.Values().FromRaw([]int64{1})
	_, err = foldedtranslator.Marshaler{}.MarshalProfiles(pd)
	var types *foldedtranslator.SampleTypesError
	require.ErrorAs(t, err, &types, "values of different types have no sum")
	assert.Equal(t, []string{"/", "samples/count"}, types.Types)
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte("a;b 1\nc 2\n"))
	f.Add([]byte("a;;b\\x3b 1\n; 2\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		pd, err := (&foldedtranslator.Unmarshaler{}).UnmarshalProfiles(data)
		if err != nil {
			return
		}
		profiletest.RequireConforms(t, pd)
		folded, err := foldedtranslator.Marshaler{}.MarshalProfiles(pd)
		require.NoError(t, err)
		again, err := (&foldedtranslator.Unmarshaler{}).UnmarshalProfiles(folded)
		require.NoError(t, err)
		second, err := foldedtranslator.Marshaler{}.MarshalProfiles(again)
		require.NoError(t, err)
		require.Equal(t, string(folded), string(second))
	})
}
