// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator/internal/fromotlp"
)

// oracle is what google/pprof takes data for, without its text parsers.
func oracle(data []byte) (*profile.Profile, error) {
	p, err := profile.ParseUncompressed(data)
	if err != nil {
		return nil, err
	}
	return p, p.CheckValid()
}

// requireAsOracle translates data and compares the outcome with google/pprof's.
func requireAsOracle(t testing.TB, data []byte) {
	t.Helper()
	want, wantErr := oracle(data)
	pd, report, err := (&Unmarshaler{}).UnmarshalReport(data)
	if wantErr != nil {
		require.Errorf(t, err, "google/pprof rejects: %v", wantErr)
		return
	}
	require.NoError(t, err)
	profiletest.RequireConforms(t, pd)
	if report.SaturatedValues == 0 {
		want.TimeNanos, want.DurationNanos = max(want.TimeNanos, 0), max(want.DurationNanos, 0)
		require.Empty(t, expand.DiffPprof(want, pd))
	}
}

// fewerSamples returns the decompressed data, unless soaking of a profile of 500 samples
// at most.
func fewerSamples(t *testing.T, data []byte) []byte {
	t.Helper()
	data, err := Decompress(data, math.MaxInt)
	require.NoError(t, err)
	const most = 500
	p, err := profile.ParseUncompressed(data)
	require.NoError(t, err)
	if full, _ := profiletest.Soak(t); full || len(p.Sample) <= most {
		return data
	}
	var kept []*profile.Sample
	for i := range most {
		kept = append(kept, p.Sample[i*len(p.Sample)/most])
	}
	p.Sample = kept
	return profiletest.Pprof(t, p.Compact())
}

// Keys that are equal once they are valid UTF-8 are one key.
func TestUnmarshalRepairsKeys_R9(t *testing.T) {
	m := base().strings("\xff", `\xff`)
	m = m.bytes(profileSample, message(nil).packed(2, 1).
		bytes(3, message(nil).varint(1, 7).varint(2, 6)).
		bytes(3, message(nil).varint(1, 8).varint(3, 4)))
	pd, report, err := (&Unmarshaler{}).UnmarshalReport(m)
	require.NoError(t, err)
	profiletest.RequireConforms(t, pd)
	require.Positive(t, report.InvalidStrings)
	samples := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples()
	require.Equal(t, 1, samples.At(1).AttributeIndices().Len())
	profiletest.Injected(t, fmt.Sprintf("%d invalid strings", report.InvalidStrings))
}

func TestNamesThatDifferInBytesThatAreNotUTF8StayApart_R9(t *testing.T) {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}}}
	want := map[string]int64{}
	for i, name := range []string{"f\xff", "f\xfe", "f\xff\xfe", "f\uFFFD", "f"} {
		f := &profile.Function{ID: uint64(i + 1), Name: name}
		l := &profile.Location{ID: uint64(i + 1), Line: []profile.Line{{Function: f}}}
		p.Function, p.Location = append(p.Function, f), append(p.Location, l)
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{l}, Value: []int64{int64(1 + i)}})
		want[[]string{`f\xff`, `f\xfe`, `f\xff\xfe`, "f\uFFFD", "f"}[i]] = int64(1 + i)
	}
	pd, report, err := (&Unmarshaler{}).UnmarshalReport(profiletest.Pprof(t, p))
	require.NoError(t, err)
	require.Equal(t, 3, report.InvalidStrings)
	profiletest.RequireConforms(t, pd)
	got := map[string]int64{}
	for _, sample := range profiletest.Expand(t, pd)[0].Samples {
		got[sample.Stack[0].Lines[0].Function] = sample.Sum.Int64()
	}
	require.Equal(t, want, got)
}

// The labels of some samples are cached, depending on a random seed.
func TestUnmarshalCountsAnInvalidStringOnce_R9(t *testing.T) {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}}}
	for i := range 2000 {
		p.Sample = append(p.Sample, &profile.Sample{Value: []int64{1}, Label: map[string][]string{
			"one": {"a\xff"}, "several": {"b\xff", fmt.Sprint(i % 500)},
		}})
	}
	_, report, err := (&Unmarshaler{}).UnmarshalReport(profiletest.Pprof(t, p))
	require.NoError(t, err)
	require.Equal(t, 2, report.InvalidStrings)
}

// message builds protobuf by hand, to say what google/pprof would not write.
type message []byte

func (m message) varint(field int, v uint64) message {
	return protowire.AppendVarint(protowire.AppendTag(m, protowire.Number(field), protowire.VarintType), v)
}

func (m message) bytes(field int, b []byte) message {
	return protowire.AppendBytes(protowire.AppendTag(m, protowire.Number(field), protowire.BytesType), b)
}

func (m message) packed(field int, values ...uint64) message {
	var b []byte
	for _, v := range values {
		b = protowire.AppendVarint(b, v)
	}
	return m.bytes(field, b)
}

func (m message) strings(all ...string) message {
	for _, s := range all {
		m = m.bytes(profileString, []byte(s))
	}
	return m
}

// base is a small valid profile whose parts the tests replace.
func base() message {
	return message(nil).
		bytes(profileSampleType, message(nil).varint(1, 1).varint(2, 2)).
		bytes(profileSample, message(nil).packed(1, 1).packed(2, 5)).
		bytes(profileMapping, message(nil).varint(1, 1).varint(2, 0x1000).varint(3, 0x2000).varint(5, 3)).
		bytes(profileLocation, message(nil).varint(1, 1).varint(2, 1).varint(3, 0x1010).bytes(4, message(nil).varint(1, 1).varint(2, 7))).
		bytes(profileFunction, message(nil).varint(1, 1).varint(2, 4)).
		strings("", "cpu", "nanoseconds", "/bin/app", "main", "key", "value")
}

// What is malformed, missing, or of another number than it should be has the outcome that it has with google/pprof.
func TestMalformedProfilesAreRejected_R4_R5(t *testing.T) {
	sample := func(m message) message { return base().bytes(profileSample, m) }
	// types is a profile with so many sample types, and with one sample if it has values.
	types := func(n int, values ...uint64) (m message) {
		for i := range n {
			m = m.bytes(profileSampleType, message(nil).varint(1, uint64(1+i%2)))
		}
		if values != nil {
			m = m.bytes(profileSample, message(nil).packed(2, values...))
		}
		return m.strings("", "cpu", "wall")
	}
	location := func(m message) message { return base().bytes(profileLocation, m) }
	one := message(nil).packed(2, 1)
	for name, test := range map[string]struct {
		data message
		want string // part of the error; empty for accepted
	}{
		"base":                         {base(), ""},
		"empty":                        {nil, "empty"},
		"only strings":                 {message(nil).strings(""), ""},
		"no strings":                   {message(nil).varint(profileTimeNanos, 1), "string index 0 is not in string_table"},
		"first string not empty":       {message(nil).strings("x"), "string_table[0]"},
		"second string table":          {base().strings("", "more"), ""},
		"sample type out of range":     {base().bytes(profileSampleType, message(nil).varint(1, 99)), "sample_type[1]"},
		"sample type negative":         {base().bytes(profileSampleType, message(nil).varint(1, math.MaxUint64)), "string index -1"},
		"values one by one":            {sample(message(nil).varint(2, 1)), ""},
		"sample without locations":     {sample(one), ""},
		"location unknown":             {sample(one.varint(1, 7)), "location_id[0]: no location with id 7"},
		"location 0":                   {sample(one.varint(1, 0)), "location_id[0]: no location with id 0"},
		"sample as varint":             {base().varint(profileSample, 1), "wire type"},
		"value of fixed64":             {sample(protowire.AppendFixed64(protowire.AppendTag(nil, 2, protowire.Fixed64Type), 1)), "wire type"},
		"label key out of range":       {sample(one.bytes(3, message(nil).varint(1, 99).varint(2, 1))), "label[0]: key"},
		"label text out of range":      {sample(one.bytes(3, message(nil).varint(1, 5).varint(2, 99))), "label[0]: str"},
		"label unit out of range":      {sample(one.bytes(3, message(nil).varint(1, 5).varint(3, 1).varint(4, 99))), "label[0]: num_unit"},
		"label unit of text":           {sample(one.bytes(3, message(nil).varint(1, 5).varint(2, 6).varint(4, 99))), ""},
		"label of nothing":             {sample(one.bytes(3, nil)), ""},
		"mapping id 0":                 {base().bytes(profileMapping, message(nil).varint(2, 5)), "mapping[1]: id 0 is reserved"},
		"mapping twice":                {base().bytes(profileMapping, message(nil).varint(1, 1)), "mapping[1]: duplicate id 1"},
		"mapping file out of range":    {base().bytes(profileMapping, message(nil).varint(1, 2).varint(5, 99)), "mapping[1]"},
		"mapping build id negative":    {base().bytes(profileMapping, message(nil).varint(1, 2).varint(6, math.MaxUint64)), "mapping[1]"},
		"mapping id huge":              {base().bytes(profileMapping, message(nil).varint(1, math.MaxUint64)), ""},
		"function id 0":                {base().bytes(profileFunction, nil), "function[1]: id 0 is reserved"},
		"function twice":               {base().bytes(profileFunction, message(nil).varint(1, 1)), "function[1]: duplicate id 1"},
		"function name out of range":   {base().bytes(profileFunction, message(nil).varint(1, 2).varint(2, 99)), "function[1]"},
		"location id 0":                {location(nil), "location[1]: id 0 is reserved"},
		"location twice":               {location(message(nil).varint(1, 1)), "location[1]: duplicate id 1"},
		"location twice, sparse":       {location(message(nil).varint(1, 1<<40)).bytes(profileLocation, message(nil).varint(1, 1<<40)), "location[2]"},
		"mapping unknown":              {location(message(nil).varint(1, 2).varint(2, 9)), ""},
		"line without a function":      {location(message(nil).varint(1, 2).bytes(4, message(nil).varint(2, 3))), "line[0]: no function with id 0"},
		"line of an unknown function":  {location(message(nil).varint(1, 2).bytes(4, message(nil).varint(1, 8))), "line[0]: no function with id 8"},
		"line torn":                    {location(message(nil).varint(1, 2).bytes(4, []byte{8})), "line[0]"},
		"period type out of range":     {base().bytes(profilePeriodType, message(nil).varint(1, 99)), "period_type"},
		"drop frames out of range":     {base().varint(profileDropFrames, 99), "drop_frames"},
		"keep frames out of range":     {base().varint(profileKeepFrames, 99), "keep_frames"},
		"comment out of range":         {base().packed(profileComment, 1, 99), "comment[1]"},
		"default type out of range":    {base().varint(profileDefaultSampleType, 99), "default_sample_type"},
		"default type unknown":         {base().varint(profileDefaultSampleType, 4), ""},
		"doc url out of range":         {base().varint(profileDocURL, 99), "doc_url"},
		"two profiles, one after":      {base().varint(profileTimeNanos, 5).varint(profileTimeNanos, 6), "several concatenated profiles"},
		"unknown fields":               {base().varint(99, 1).bytes(1000, []byte("x")), ""},
		"group":                        {append(base(), 99<<3&0x7f|3), "wire type 3"},
		"torn":                         {base()[:len(base())-3], "string_table"},
		"negative time and duration":   {base().varint(profileTimeNanos, math.MaxUint64).varint(profileDurationNanos, 1<<63), ""},
		"ten byte varint":              {append(base(), 0x98, 0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), ""},
		"eleven byte varint":           {append(base(), 0x98, 0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01), "varint"},
		"packed location ids in two":   {sample(one.packed(1, 1, 1).varint(1, 1)), ""},
		"packed run torn":              {sample(one.bytes(1, []byte{0x80})), "sample[1]"},
		"negative value":               {sample(message(nil).packed(2, math.MaxUint64)), ""},
		"a value too few":              {types(2, 1), "sample[0]: 1 values for 2 sample types"},
		"a value too many":             {types(2, 1, 2, 3), "sample[0]: more values than the 2 sample types"},
		"no values":                    {types(1, []uint64{}...), "sample[0]: 0 values for 1 sample types"},
		"no sample type":               {types(0, 1), "no sample_type"},
		"no sample type, no samples":   {types(0), ""},
		"no samples":                   {types(2), ""},
		"no period type":               {types(3, 1, 2, 3), ""},
		"period without period type":   {types(1, 1).varint(profilePeriod, 5), ""},
		"sample without its locations": {message(nil).bytes(profileSampleType, nil).bytes(profileSample, one).strings(""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&Unmarshaler{}).UnmarshalProfiles(test.data)
			requireAsOracle(t, test.data)
			if test.want == "" {
				require.NoError(t, err)
				profiletest.Injected(t, "1 oddities taken")
			} else {
				require.ErrorContains(t, err, test.want)
				profiletest.Injected(t, "1 faults rejected")
			}
		})
	}
}

// Every prefix and every bit flip of a small profile is rejected or translated as
// google/pprof does, and never panics.
func TestDamagedProfilesDoNotPanic_R1(t *testing.T) {
	profiles := [][]byte{base()}
	for seed := range uint64(profiletest.Rounds(t, 1, 4)) {
		small := profiletest.GeneratePprof(profiletest.NewRand(3 + seed))
		small.Sample = small.Sample[:min(3, len(small.Sample))]
		for _, s := range small.Sample {
			if len(s.NumLabel["end_timestamp_ns"]) > 1 { // google/pprof drops one that has lost its value, so that the other is a timestamp
				delete(s.NumLabel, "end_timestamp_ns")
			}
		}
		profiles = append(profiles, profiletest.Pprof(t, small.Compact()))
	}
	prefixes, flips := 0, 0
	for _, data := range profiles {
		prefixes, flips = prefixes+len(data), flips+8*len(data)
		for n := range data {
			requireAsOracle(t, data[:n])
		}
		for i := range data {
			for bit := range 8 {
				damaged := bytes.Clone(data)
				damaged[i] ^= 1 << bit
				requireAsOracle(t, damaged)
			}
		}
	}
	profiletest.Injected(t, fmt.Sprintf("%d prefixes, %d flipped bits", prefixes, flips))
}

// A limit of single entries holds at L-1, L and L+1, and a factor of 2 doubles it.
func TestEachLimitIsExact_R8(t *testing.T) {
	base := message(nil).strings("", "cpu", "nanoseconds").bytes(profileSampleType, message(nil).varint(1, 1).varint(2, 2)).
		bytes(profileLocation, message(nil).varint(locationID, 1))
	value := message(nil).varint(sampleValue, 1)
	repeated := func(field int, entry message, n int) message {
		return bytes.Repeat(message(nil).bytes(field, entry), n)
	}
	for name, test := range map[string]struct {
		with  func(n int) message
		limit int
	}{
		"samples": {func(n int) message { return repeated(profileSample, value, n) }, 4 << 20},
		"stack depth": {func(n int) message {
			return message(nil).bytes(profileSample, value.bytes(sampleLocation, bytes.Repeat([]byte{1}, n)))
		}, 64 << 10},
		"labels": {func(n int) message {
			return message(nil).bytes(profileSample, append(repeated(sampleLabel, message(nil).varint(labelKey, 1), n), value...))
		}, 4 << 10},
		"string length": {func(n int) message { return message(nil).strings(strings.Repeat("s", n)) }, 1 << 20},
	} {
		for _, factor := range []int{1, 2} {
			limit := test.limit * factor
			for _, n := range []int{limit - 1, limit, limit + 1} {
				profiletest.Injected(t, "1 values of limits")
				_, err := (&Unmarshaler{Limits: Limits{Factor: factor}}).UnmarshalProfiles(slices.Concat(base, test.with(n)))
				if n <= limit {
					require.NoError(t, err, name)
					continue
				}
				var is *LimitError
				require.ErrorAs(t, err, &is, name)
				assert.EqualValues(t, limit, is.Limit, name)
			}
		}
	}
	for _, delta := range []int{-1, 0, 1} {
		_, err := (&Unmarshaler{Limits: Limits{DecompressedSize: len(base) + delta}}).UnmarshalProfiles(base)
		require.Equal(t, delta < 0, isLimit(err), "%v", err)
	}
}

func TestDecompress(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 1000)
	got, err := Decompress(data, len(data))
	require.NoError(t, err)
	require.Same(t, &data[0], &got[0], "what is not gzip is not copied")

	got, err = Decompress(slices.Concat(profiletest.Gzip(t, data[:5000]), profiletest.Gzip(t, nil), profiletest.Gzip(t, data[5000:])), len(data))
	require.NoError(t, err)
	require.Equal(t, data, got, "all members")

	_, err = Decompress(profiletest.Gzip(t, data), len(data)-1)
	var limit *LimitError
	require.ErrorAs(t, err, &limit)

	z := profiletest.Gzip(t, data)
	damaged := bytes.Clone(z)
	damaged[len(damaged)-6] ^= 1 // checksum
	for _, torn := range [][]byte{z[:2], z[:len(z)/2], z[:len(z)-1], append(bytes.Clone(z), 1, 2, 3), damaged} {
		_, err = Decompress(torn, len(data))
		require.Error(t, err)
		require.NotErrorAs(t, err, &limit)
	}
}

// Sums of one identity beyond int64 stay at its limits, until a value of the other sign comes.
func TestOverflowingSumsSaturate_R7(t *testing.T) {
	l := &profile.Location{ID: 1, Address: 5}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "a", Unit: "b"}, {Type: "c", Unit: "d"}},
		Location:   []*profile.Location{l},
	}
	for _, values := range [][]int64{{math.MaxInt64, math.MinInt64}, {2, -1}, {-7, 7}} {
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{l}, Value: values})
	}
	pd, report, err := (&Unmarshaler{}).UnmarshalReport(profiletest.Pprof(t, p))
	require.NoError(t, err)
	require.Equal(t, 2, report.SaturatedValues)
	profiles := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	require.Equal(t, 2, profiles.Len())
	for i, want := range []int64{math.MinInt64 + 7, math.MaxInt64 - 7} { // the default sample type is the last
		require.Equal(t, []int64{want}, profiles.At(i).Samples().At(0).Values().AsRaw())
	}
	profiletest.Injected(t, "2 values beyond the edges of int64")
}

// Times and durations below zero become 0 and are counted.
func TestNegativeTimesBecomeZero_R7(t *testing.T) {
	for negative, times := range [][2]uint64{{7, math.MaxInt64}, {7, math.MaxUint64 - 7}, {math.MaxUint64, 1 << 63}} {
		data := base().varint(profileTimeNanos, times[0]).varint(profileDurationNanos, times[1])
		requireAsOracle(t, data) // which has negative ones as 0
		_, report, err := (&Unmarshaler{}).UnmarshalReport(data)
		require.NoError(t, err)
		require.Equal(t, negative, report.NegativeTimes)
		profiletest.Injected(t, fmt.Sprintf("%d negative times and durations", negative))
	}
}

// Payloads of tiny entries take no more memory than Memory says, and are accepted if they are valid.
func TestTinyEntriesStayInMemoryBound_R3(t *testing.T) {
	const size = 1 << 20
	repeated := func(start message, add func(m message, i int) message) message {
		for i := 0; len(start) < size; i++ {
			start = add(start, i)
		}
		return start
	}
	always := func(start message, field int, entry message) message {
		return repeated(start, func(m message, _ int) message { return m.bytes(field, entry) })
	}
	id := func(i int) uint64 { return uint64(i + 2) }
	inner, innermost := make(message, 0, 2000), make(message, 0, 2000) // used again for each entry
	for name, data := range map[string]message{
		"samples without anything": always(base(), profileSample, nil),
		"equal samples":            always(base(), profileSample, message(nil).varint(2, 0)),
		"strings":                  always(base(), profileString, nil),
		"mappings":                 repeated(base(), func(m message, i int) message { return m.bytes(profileMapping, inner.varint(1, id(i))) }),
		"functions":                repeated(base(), func(m message, i int) message { return m.bytes(profileFunction, inner.varint(1, id(i))) }),
		"locations":                repeated(base(), func(m message, i int) message { return m.bytes(profileLocation, inner.varint(1, id(i))) }),
		"sparse functions":         repeated(base(), func(m message, i int) message { return m.bytes(profileFunction, inner.varint(1, id(i)<<40)) }),
		"sparse locations":         repeated(base(), func(m message, i int) message { return m.bytes(profileLocation, inner.varint(1, id(i)<<40)) }),
		"sample types":             always(message(nil).strings(""), profileSampleType, nil),
		"comments":                 repeated(base(), func(m message, _ int) message { return m.varint(profileComment, 1) }),
		"lines":                    base().bytes(profileLocation, always(message(nil).varint(1, 2), 4, message(nil).varint(1, 1))),
		"a deep stack":             base().bytes(profileSample, message(nil).packed(2, 1).bytes(1, bytes.Repeat([]byte{1}, size))),
		"many values":              base().bytes(profileSample, message(nil).bytes(2, make([]byte, size))),
		"labels":                   base().bytes(profileSample, always(message(nil).packed(2, 1), 3, nil)),
		"distinct labels": repeated(base(), func(m message, i int) message {
			return m.bytes(profileSample, inner.varint(2, 1).bytes(3, innermost.varint(1, 5).varint(3, uint64(i))))
		}),
		"used locations": repeated(base(), func(m message, i int) message {
			return m.bytes(profileLocation, inner.varint(1, id(i)).varint(3, id(i))).
				bytes(profileSample, inner.varint(1, id(i)).varint(2, 1))
		}),
		"zeros of many types": repeated(func() message {
			m := message(nil).strings("")
			for range 1000 {
				m = m.bytes(profileSampleType, nil)
			}
			for i := range 100 {
				m = m.bytes(profileLocation, message(nil).varint(1, uint64(i+1)).varint(3, uint64(i)))
			}
			return m
		}(), func(m message, i int) message {
			return m.bytes(profileSample, inner.packed(1, uint64(i%100+1), uint64(i/100%100+1)).bytes(2, make([]byte, 1000)))
		}),
	} {
		t.Run(name, func(t *testing.T) {
			allocated, err := requireItsMemory(t, data)
			if strings.Contains(name, "used") || strings.Contains(name, "distinct") {
				require.NoError(t, err)
			}
			if err == nil {
				pd, err := (&Unmarshaler{}).UnmarshalProfiles(data)
				require.NoError(t, err)
				profiletest.RequireConforms(t, pd)
			}
			require.LessOrEqual(t, allocated, 48*len(data), "bytes of the payload")
			profiletest.Injected(t, "1 payloads of tiny entries")
		})
	}
}

// Zeros are left out where they would not fit, and nothing else: a missing value is 0.
func TestUnmarshalOmitsZeros(t *testing.T) {
	options := expand.AsPprof
	options.IgnoreZeroSamples = true
	for seed := range uint64(50) {
		p := profiletest.GeneratePprof(profiletest.NewRand(seed))
		data := profiletest.Pprof(t, p)
		want, err := oracle(data)
		require.NoError(t, err)
		d := decoders.Get().(*decoder)
		d.limits, d.names = Limits{}.withDefaults(), fromotlp.NewLabels("", "", "")
		d.reset(data)
		sparse := pprofile.NewProfiles()
		require.NoError(t, d.decode())
		d.zeros = -1
		d.write(sparse)
		profiletest.RequireConforms(t, sparse)
		require.Empty(t, expand.Diff(expand.Normalize(expand.Pprof(want), options), expand.Normalize(profiletest.Expand(t, sparse), options)))
		require.LessOrEqual(t, sparse.SampleCount(), d.matrix.kept+len(d.header.sampleTypes)*d.events.identities.Len())
	}
}
