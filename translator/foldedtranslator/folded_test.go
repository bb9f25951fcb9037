// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package foldedtranslator_test

import (
	"fmt"
	"math"
	"math/big"
	"slices"
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
		"a;b 1\nno value\n":              `line 2: value is "value": must be a number, such as 12 or 12.5`,
		"a;b\n":                          `line 1: "a;b": must be a stack, a space and a value`,
		"a 9223372036854775807\na 1\n":   "line 2: the sum of the values of this stack overflows int64",
		"a;b 1.5e3\n":                    `line 1: value is "1.5e3": must be a number`,
		"a;b 1.-5\n":                     `line 1: value is "1.-5": must be a number`,
		"a;b .\n":                        `line 1: value is ".": must be a number`,
		"main;a 3 5\nmain;b 4 9\n":       "each line has two values, as difffolded.pl writes them",
		"\xff\xfea\x00 \x001\x00\n\x00":  "is text in UTF-16, as > of Windows PowerShell writes it",
		"\xfe\xff\x00a\x00 \x001\x00\n":  "is text in UTF-16",
		strings.Repeat("x", 5000) + "\n": `line 1: "` + strings.Repeat("x", 80) + `": must be`,
	} {
		_, err := (&foldedtranslator.Unmarshaler{}).UnmarshalProfiles([]byte(text))
		assert.ErrorContains(t, err, want)
	}
}

// values returns the sums by stack, from the root.
func values(t *testing.T, pd pprofile.Profiles) map[string]int64 {
	t.Helper()
	sums := map[string]int64{}
	for _, sample := range profiletest.Expand(t, pd)[0].Samples {
		var frames []string
		for _, frame := range slices.Backward(sample.Stack) {
			frames = append(frames, frame.Lines[0].Function)
		}
		sums[strings.Join(frames, "|")] = sample.Sum.Int64()
	}
	return sums
}

func TestValuesWithDecimalsKeepTheirSum(t *testing.T) {
	for text, want := range map[string]map[string]int64{
		"main;a 31.23\nmain;b 5.0\n":              {"main|a": 31, "main|b": 5},
		"a 0.4\nb 0.4\nc 0.4\nd 1.\n":             {"b": 1, "a": 0, "c": 0, "d": 1},
		"a -0.4\nb -0.4\na -1.5\nb +2\n":          {"a": -1, "b": 1}, // -0.8 was -1, so that -1.5 is 0.2 too low
		"a 9007199254740993.25\n":                 {"a": 9007199254740993},
		"a 0.333333333333\na 0.333333333\na 0.34": {"a": 1},
	} {
		assert.Equal(t, want, values(t, unmarshal(t, text)), text)
	}
	pd, err := (&foldedtranslator.Unmarshaler{Period: 10_000_000}).UnmarshalProfiles([]byte("a 1.5\nb 0.25\n"))
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"a": 15_000_000, "b": 2_500_000}, values(t, pd))
	for _, value := range []string{"9223372036854775807.9", "-9223372036854775807.9"} {
		_, err = (&foldedtranslator.Unmarshaler{Period: 2}).UnmarshalProfiles([]byte("a " + value))
		require.ErrorContains(t, err, "2 times as much overflows int64")
	}
	_, err = (&foldedtranslator.Unmarshaler{}).UnmarshalProfiles([]byte("a 9223372036854775807.9"))
	require.ErrorContains(t, err, "overflows int64")
}

func TestRandomValuesWithDecimalsKeepTheirSum(t *testing.T) {
	r := profiletest.NewRand(1)
	for range 200 {
		var text strings.Builder
		sum, period := new(big.Rat), 1+r.Int64N(1_000_000_000)
		for i := range 50 {
			value := fmt.Sprintf("%d.%0*d", r.IntN(2000)-1000, 1+r.IntN(9), r.IntN(10))
			exact, _ := new(big.Rat).SetString(value)
			sum.Add(sum, exact)
			fmt.Fprintf(&text, "f%d %s\n", i%7, value)
		}
		pd, err := (&foldedtranslator.Unmarshaler{Period: period}).UnmarshalProfiles([]byte(text.String()))
		require.NoError(t, err)
		got := new(big.Rat)
		for _, value := range values(t, pd) {
			got.Add(got, big.NewRat(value, 1))
		}
		off, _ := got.Sub(got, sum.Mul(sum, big.NewRat(period, 1))).Float64()
		require.LessOrEqual(t, math.Abs(off), 0.5)
	}
}

func TestCommentsAndByteOrderMarksAreNoFrames(t *testing.T) {
	for text, want := range map[string]map[string]int64{
		"# austin: 3.3.0\n# mode: wall\n# interval: 100\n\nP1;T1;m.py:f:3 10\n\n# duration: 23\n": {"P1|T1|m.py:f:3": 10},
		"\ufeffmain;a 3\nmain;b 4\n": {"main|a": 3, "main|b": 4},
		"\ufeff# mode: wall\na 1\n":  {"a": 1},
		"a 1\n# b: 2\n#;c 3\n":       {"a": 1, "# b:": 2, "#|c": 3},
		"#1;a 1\n#main 2\n":          {"#1|a": 1, "#main": 2},
		"worker 1 5\nmain 2\n":       {"worker 1": 5, "main": 2},
	} {
		assert.Equal(t, want, values(t, unmarshal(t, text)), text)
	}
}

func TestMarshalWritesWhatUnmarshalReads(t *testing.T) {
	for _, text := range []string{
		"java/util/Map;lambda$0\\x3bx;line\\x0afeed 3\nmain 7\nmain;number 3 1\nmain;space\\x09\\x20 1\nmain;with space 1\n",
		"\\x23 mode: wall 1\nmain 1\n", "\ufeff\ufeffmain 1\n\ufeffother 1\n",
		"main;number 1 1\nmain;number\\x202 2\n", "a\\x09-1.5 1\n",
	} {
		read := unmarshal(t, text)
		folded, err := foldedtranslator.Marshaler{}.MarshalProfiles(read)
		require.NoError(t, err)
		assert.Equal(t, text, string(folded))
		assert.Equal(t, values(t, read), values(t, unmarshal(t, string(folded))))
	}
	assert.Equal(t, map[string]int64{"main|number  3": 1}, values(t, unmarshal(t, "main;number \\x203 1\n")))
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
	f.Add([]byte("# a: b\n\\x23 a:;b 1.5\n\ufeff c\\x20 -2.25\nd\\x209 1\n"))
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
