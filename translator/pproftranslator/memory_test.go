// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// ofTinySamples is a profile of so many distinct samples of about 14 bytes, with so many
// sample types.
func ofTinySamples(n, types int, value uint64) message {
	m := message(nil).strings("", "cpu", "nanoseconds")
	for range types {
		m = m.bytes(profileSampleType, message(nil).varint(1, 1).varint(2, 2))
	}
	inner, values := make(message, 0, 100), slices.Repeat([]uint64{value}, types)
	for i := range 1000 {
		m = m.bytes(profileLocation, inner.varint(1, uint64(i+1)).varint(3, uint64(0x1000+16*i)))
	}
	for i := range n {
		m = m.bytes(profileSample, inner.packed(1, uint64(1+i%1000), uint64(1+i/1000)).packed(2, values...))
	}
	return m
}

// ofLargeNumbers is a profile of so many functions, locations and stacks whose numbers take up to ten bytes each, also in the
// keys of tables.
func ofLargeNumbers(n int) message {
	m := message(nil).strings("", "cpu", "nanoseconds").bytes(profileSampleType, message(nil).varint(1, 1).varint(2, 2))
	inner, innermost := make(message, 0, 100), make(message, 0, 100)
	for i := range uint64(n) {
		id, large := i+1, 1<<63+i
		m = m.strings(fmt.Sprint("f", i)).
			bytes(profileFunction, inner.varint(functionID, id).varint(functionName, 3+i).varint(functionSystemName, 3+i).
				varint(functionFilename, 3+i).varint(functionStartLine, large)).
			bytes(profileLocation, inner.varint(locationID, id).varint(locationAddress, large).
				bytes(locationLine, innermost.varint(lineFunction, id).varint(lineLine, large).varint(lineColumn, large))).
			bytes(profileSample, inner.packed(sampleLocation, id, i/2+1).packed(sampleValue, 1))
	}
	return m
}

// What Memory says is what a translation takes, and up to twice as much: of the files of the corpus, of
// profiles of distinct samples, of tiny entries, and of large numbers. The result takes what its report says.
func TestMemoryIsThatOfTheTranslation_M1(t *testing.T) {
	profiles := map[string][]byte{}
	for _, file := range profiletest.Corpus(t) {
		data, err := Decompress(file.Data, 1<<30)
		require.NoError(t, err)
		profiles[file.Name] = data
	}
	for _, n := range []int{5_000, 20_000, profiletest.Rounds(t, 50_000, 200_000)} {
		profiles[fmt.Sprint(n, " labels")] = ofLabels(n, distinct)
		profiles[fmt.Sprint(n, " tiny")] = ofTinySamples(n, 2, 1)
		profiles[fmt.Sprint(n, " zeros")] = ofTinySamples(n, 8, 0)
		profiles[fmt.Sprint(n, " locations")] = ofLocations(n)
		profiles[fmt.Sprint(n, " large numbers")] = ofLargeNumbers(n)
	}
	for name, data := range profiles {
		limits := Limits{}
		work, result := (&Unmarshaler{Limits: limits}).Memory(data)
		expected := work + result
		before := profiletest.Heap()
		d := &decoder{payload: payload{limits: limits.withDefaults()}, tables: dictionary.New()}
		d.reset(data)
		pd, report, err := d.translate()
		require.NoError(t, err)
		alive := profiletest.Heap() - before
		runtime.KeepAlive(d)
		profile := profiletest.Heap() - before
		runtime.KeepAlive(pd)
		runtime.KeepAlive(data)
		noise := int64(16 << 10)
		if profiletest.RaceEnabled { // the race detector makes objects larger
			noise += alive / 10
		}
		assert.GreaterOrEqual(t, expected+noise, alive, name)
		assert.GreaterOrEqual(t, int64(report.Bytes)+noise, profile, name)
		assert.LessOrEqual(t, expected, 2*alive+2*noise, name)
		assert.LessOrEqual(t, int64(report.Bytes), profile*3/2+noise, name)
	}
}

// noMore lets a translation take no more than this.
func noMore(limit int64) func(int64) (int64, error) {
	return func(needed int64) (int64, error) {
		return 0, &LimitError{What: "memory in bytes", Limit: limit, Got: needed}
	}
}

// requireItsMemory holds what a translation within the result that Memory states allocates against what Memory says. In total that is
// more than what is held at once, as slices grow.
func requireItsMemory(t *testing.T, data message) (allocated int, err error) {
	t.Helper()
	work, result := (&Unmarshaler{}).Memory(data)
	profiletest.Heap() // without decoders of before
	allocated = int(profiletest.AllocatedBy(func() { _, _, err = (&Unmarshaler{}).UnmarshalWithin(data, result, noMore(result)) }))
	estimate := max(work+result, int64(len(data)))
	require.LessOrEqual(t, int64(allocated), estimate+estimate/2+1<<20)
	return allocated, err
}

// A byte that is not UTF-8 becomes four.
func TestMemoryOfNamesThatAreNotUTF8_M3(t *testing.T) {
	data := message(nil).strings("", "cpu", "nanoseconds").bytes(profileSampleType, message(nil).varint(1, 1).varint(2, 2))
	for i := range uint64(8) {
		data = data.strings(strings.Repeat("\xff", 1<<20-int(i))).
			bytes(profileFunction, message(nil).varint(functionID, i+1).varint(functionName, 3+i)).
			bytes(profileLocation, message(nil).varint(locationID, i+1).bytes(locationLine, message(nil).varint(lineFunction, i+1))).
			bytes(profileSample, message(nil).packed(sampleLocation, i+1).varint(sampleValue, 1))
	}
	work, result := (&Unmarshaler{}).Memory(data)
	before := profiletest.Heap()
	pd, report, err := (&Unmarshaler{}).UnmarshalReport(data)
	require.NoError(t, err)
	held := profiletest.Heap() - before
	runtime.KeepAlive(data)
	require.Greater(t, held, int64(31<<20))
	require.Less(t, held, int64(report.Bytes)*3/2)
	require.Less(t, held, work+result)
	require.Equal(t, 8, report.InvalidStrings)
	require.Equal(t, 8, pd.SampleCount())
}

// A field that may be packed takes a value in two bytes of the payload and eight in memory
// if it is not.
func TestUnpackedFieldsAreLimited_M3(t *testing.T) {
	for _, field := range []int{sampleLocation, sampleValue} {
		data := message(nil).strings("", "cpu", "nanoseconds").bytes(profileSampleType, message(nil).varint(1, 1).varint(2, 2)).
			bytes(profileLocation, message(nil).varint(locationID, 1)).
			bytes(profileSample, bytes.Repeat([]byte{byte(field << 3), 1}, 1<<20))
		allocated := profiletest.AllocatedBy(func() {
			_, err := (&Unmarshaler{}).UnmarshalProfiles(data)
			require.Error(t, err)
		})
		require.Less(t, allocated, uint64(4<<20), "field %d", field)
		profiletest.Injected(t, "1 profiles of unpacked values")
	}
}

// The main program is looked for among all mappings, of which each may have the same long name.
func TestMappingsOfOneLongNameAreNotCopied(t *testing.T) {
	for _, name := range []string{"[", "/lib.so.", " "} {
		data := message(nil).strings("", name+strings.Repeat(name[len(name)-1:], 1<<19))
		for i := range 1000 {
			data = data.bytes(profileMapping, message(nil).varint(mappingID, uint64(i+1)).varint(mappingFilename, 1))
		}
		var err error
		allocated := profiletest.AllocatedBy(func() { _, err = (&Unmarshaler{}).UnmarshalProfiles(data) })
		require.NoError(t, err)
		require.Less(t, allocated, uint64(8<<20), "%.10q", name)
	}
}

// A string may be that of many entries, and a payload of a long one compresses to a few bytes.
func TestOneLongTextOfManyEntriesIsRejected_R2(t *testing.T) {
	const short, long, key = 1, 3, 5 // strings: two are long, then come keys
	strs := []string{"", "cpu", "nanoseconds", strings.Repeat("a", 224<<10), strings.Repeat("a", 224<<10-1)}
	for i := range 1000 {
		strs = append(strs, fmt.Sprint("k", i))
	}
	head := message(nil).strings(strs...).bytes(profileSampleType, message(nil).varint(1, 1).varint(2, 2))
	one := message(nil).varint(sampleValue, 1)
	text := func(key, text uint64) message { return message(nil).varint(labelKey, key).varint(labelString, text) }
	number := func(key, number, unit uint64) message {
		return message(nil).varint(labelKey, key).varint(labelNumber, number).varint(labelNumUnit, unit)
	}
	profiles, ofSample := map[string]message{}, map[string]message{}
	for i := range uint64(1000) {
		for name, entries := range map[string]message{
			"comments": message(nil).varint(profileComment, long),
			"build ids": message(nil).bytes(profileMapping, message(nil).varint(mappingID, i+1).varint(mappingBuildID, long)).
				bytes(profileLocation, message(nil).varint(locationID, i+1).varint(locationMapping, i+1)).
				bytes(profileSample, message(nil).packed(sampleLocation, i+1).varint(sampleValue, 1)),
			"samples": message(nil).bytes(profileSample, one.bytes(sampleLabel, text(key+i, long))),
			"labels of different samples": message(nil).bytes(profileSample, one.bytes(sampleLabel, text(key, long)).
				bytes(sampleLabel, text(key, short)).bytes(sampleLabel, number(short, i+1, 0))),
		} {
			profiles[name] = append(profiles[name], entries...)
		}
		for name, label := range map[string]message{
			"labels": text(key+i, long), "values of a key": text(key, long), "pairs of values": text(key+i/2, long),
			"keys": text(long+i%2, short), "accepted: units": number(key+i, 7, long), "accepted: one key": number(long, i, 0),
		} {
			ofSample[name] = ofSample[name].bytes(sampleLabel, label)
		}
	}
	for name, labels := range ofSample {
		profiles[name] = message(nil).bytes(profileSample, labels.varint(sampleValue, 1))
	}
	for name, entries := range profiles {
		t.Run(name, func(t *testing.T) {
			allocated, err := requireItsMemory(t, slices.Concat(head, entries))
			require.NotEqual(t, strings.HasPrefix(name, "accepted"), isLimit(err), "%v", err)
			require.Less(t, allocated, 32<<20)
		})
	}
}

// The limit is on the result, in which equal entries are one.
func TestEqualEntriesCountOnce(t *testing.T) {
	const n = 200_000
	data := message(nil).strings("", "cpu", "nanoseconds", "main").bytes(profileSampleType, message(nil).varint(1, 1).varint(2, 2))
	inner, line := make(message, 0, 16), message(nil).varint(lineFunction, 1)
	data = data.bytes(profileFunction, inner.varint(functionID, 1).varint(functionName, 3))
	var ids []uint64
	for i := range uint64(n) {
		ids = append(ids, i+1)
		data = data.bytes(profileLocation, inner.varint(locationID, i+1).bytes(locationLine, line))
	}
	for stack := range slices.Chunk(ids, 20) {
		data = data.bytes(profileSample, message(nil).packed(sampleLocation, stack...).varint(sampleValue, 1))
	}
	pd, err := (&Unmarshaler{Limits: Limits{Memory: 1 << 10}}).UnmarshalProfiles(data)
	require.NoError(t, err)
	require.Equal(t, 1, pd.SampleCount())
	_, err = (&Unmarshaler{Limits: Limits{Memory: 1 << 10}}).UnmarshalProfiles(ofTinySamples(100, 1, 1))
	require.True(t, isLimit(err), "%v", err)
}
