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

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// ofTinySamples is a profile of so many distinct samples of about 14 bytes, with so many
// sample types.
func ofTinySamples(n, types int, value uint64) message {
	m := message(nil).strings("", "cpu", "nanoseconds")
	for range types {
		m = m.bytes(profileSampleType, message(nil).varint(1, 1).varint(2, 2))
	}
	inner, values := make(message, 0, 100), make([]uint64, types)
	for i := range values {
		values[i] = value
	}
	for i := range 1000 {
		m = m.bytes(profileLocation, inner.varint(1, uint64(i+1)).varint(3, uint64(0x1000+16*i)))
	}
	for i := range n {
		m = m.bytes(profileSample, inner.packed(1, uint64(1+i%1000), uint64(1+i/1000)).packed(2, values...))
	}
	return m
}

// ofSparseFunctions is a profile of so many functions with large IDs.
func ofSparseFunctions(n int) message {
	m, inner := message(nil).strings(""), make(message, 0, 100)
	for i := range n {
		m = m.bytes(profileFunction, inner.varint(functionID, uint64(i+1)<<30))
	}
	return m
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// What Memory says is what a translation takes, and up to twice as much: of the files of the corpus, of
// profiles of distinct samples, and of tiny entries. The result takes what its report says.
func TestMemoryIsThatOfTheTranslation_M1(t *testing.T) {
	profiles := map[string][]byte{}
	for _, file := range profiletest.Corpus(t) {
		data, err := Decompress(file.Data, 1<<30)
		require.NoError(t, err)
		profiles[file.Name] = data
	}
	for _, n := range []int{5_000, 20_000, profiletest.Rounds(t, 50_000, 200_000)} {
		profiles[fmt.Sprint(n, " labels")] = ofLabels(n, func(i int) string { return fmt.Sprint("request ", i) })
		profiles[fmt.Sprint(n, " tiny")] = ofTinySamples(n, 2, 1)
		profiles[fmt.Sprint(n, " zeros")] = ofTinySamples(n, 8, 0)
		profiles[fmt.Sprint(n, " locations")] = ofLocations(n)
	}
	for name, data := range profiles {
		limits := Limits{Expansion: 100}
		expected := (&Unmarshaler{Limits: limits}).Memory(data)
		before := heap()
		d := &decoder{tables: dictionary.New(0), limits: limits.withDefaults()}
		d.reset(data)
		pd, report, err := d.translate()
		require.NoError(t, err)
		alive := heap() - before
		runtime.KeepAlive(d)
		profile := heap() - before
		runtime.KeepAlive(pd)
		runtime.KeepAlive(data)
		t.Logf("%s: %d bytes, expected %.2f times, alive %.2f, result expected %.2f, alive %.2f: ratio %.2f", name, len(data),
			float64(expected)/float64(len(data)), float64(alive)/float64(len(data)),
			float64(report.Bytes)/float64(len(data)), float64(profile)/float64(len(data)), float64(expected)/float64(alive))
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

// repeated are small profiles in which a sample, or all of them, refer to one long text many times.
func repeated() map[string]message {
	const n = 1000
	strs := []string{"", "cpu", "nanoseconds", strings.Repeat("a", 1<<20)}
	for i := range n {
		strs = append(strs, fmt.Sprint("k", i))
	}
	head := message(nil).strings(strs...).bytes(profileSampleType, message(nil).varint(1, 1).varint(2, 2)).
		bytes(profileLocation, message(nil).varint(1, 1).varint(3, 0x1000))
	const long, first = 3, 4 // strings
	text := func(key uint64) message { return message(nil).varint(labelKey, key).varint(labelString, long) }
	ofSample := func(label func(i uint64) message) message {
		sample := message(nil).packed(1, 1).packed(2, 5)
		for i := range uint64(n) {
			sample = sample.bytes(sampleLabel, label(i))
		}
		return slices.Concat(head, message(nil).bytes(profileSample, sample))
	}
	samples := slices.Clone(head)
	for i := range uint64(n) {
		samples = samples.bytes(profileSample, message(nil).packed(1, 1).packed(2, 5).bytes(sampleLabel, text(first+i)))
	}
	return map[string]message{
		"labels of a sample": ofSample(func(i uint64) message { return text(first + i) }),
		"values of a label":  ofSample(func(uint64) message { return text(first) }),
		"pairs of values":    ofSample(func(i uint64) message { return text(first + i/2) }),
		"units": ofSample(func(i uint64) message {
			return message(nil).varint(labelKey, first+i).varint(labelNumber, 7).varint(labelNumUnit, long)
		}),
		"keys":    ofSample(func(i uint64) message { return message(nil).varint(labelKey, long).varint(labelNumber, i) }),
		"samples": samples,
	}
}

// Adversarial profiles take no more than Memory says: few bytes that are many long texts, once compressed, and tiny
// entries.
func TestAdversarialProfilesTakeTheirMemory_M3(t *testing.T) {
	profiles := repeated()
	profiles["tiny samples"] = ofTinySamples(100_000, 2, 1)
	profiles["tiny zeros"] = ofTinySamples(10_000, 64, 0)
	profiles["empty strings"] = slices.Repeat(message(nil).strings(""), 1<<20)
	profiles["ids of functions"] = ofSparseFunctions(1 << 17)
	for name, data := range profiles {
		expected := (&Unmarshaler{}).Memory(data)
		var err error
		heap() // without decoders of before
		allocated := profiletest.AllocatedBy(func() { _, _, err = (&Unmarshaler{}).UnmarshalReport(data) })
		t.Logf("%s: %d bytes, expected %d, allocated %d, %v", name, len(data), expected, allocated, err)
		// What is allocated in total is more than what is held at once: slices grow.
		assert.LessOrEqual(t, int64(allocated), 3*expected+1<<20, name)
		profiletest.Injected(t, "1 profiles of tiny entries")
	}
}

// A field that may be packed takes a value in two bytes of the payload and eight in memory
// if it is not.
func TestUnpackedFieldsAreLimited_M3(t *testing.T) {
	for _, field := range []int{sampleLocation, sampleValue} {
		data := message(nil).strings("", "cpu", "nanoseconds").bytes(profileSampleType, message(nil).varint(1, 1).varint(2, 2)).
			bytes(profileLocation, message(nil).varint(locationID, 1)).
			bytes(profileSample, bytes.Repeat([]byte{byte(field << 3), 1}, 1<<20))
		var err error
		allocated := profiletest.AllocatedBy(func() { _, err = (&Unmarshaler{}).UnmarshalProfiles(data) })
		require.Error(t, err)
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
	const long, short, entries = 3, 1, 1000
	start := func() message {
		return message(nil).strings("", "cpu", "nanoseconds", strings.Repeat("a", 256<<10), "key", strings.Repeat("a", 256<<10-1)).
			bytes(profileSampleType, message(nil).varint(1, 1).varint(2, 2))
	}
	label := func(key, text uint64) message { return message(nil).varint(labelKey, key).varint(labelString, text) }
	comments, builds, different := start(), start(), start()
	values, keys := message(nil).varint(sampleValue, 1), message(nil).varint(sampleValue, 1)
	for i := range uint64(entries) {
		comments = comments.varint(profileComment, long)
		builds = builds.bytes(profileMapping, message(nil).varint(mappingID, i+1).varint(mappingBuildID, long)).
			bytes(profileLocation, message(nil).varint(locationID, i+1).varint(locationMapping, i+1)).
			bytes(profileSample, message(nil).packed(sampleLocation, i+1).varint(sampleValue, 1))
		values = values.bytes(sampleLabel, label(4, long))
		keys = keys.bytes(sampleLabel, label(long+2*(i%2), short))
		different = different.bytes(profileSample, message(nil).varint(sampleValue, 1).bytes(sampleLabel, label(4, long)).
			bytes(sampleLabel, label(4, short)).bytes(sampleLabel, message(nil).varint(labelKey, 1).varint(labelNumber, i+1)))
	}
	for name, data := range map[string]message{
		"comments": comments, "build ids": builds, "values of one key": start().bytes(profileSample, values),
		"keys": start().bytes(profileSample, keys), "labels of different samples": different,
	} {
		var err error
		allocated := profiletest.AllocatedBy(func() { _, err = (&Unmarshaler{}).UnmarshalProfiles(data) })
		var tooLarge *LimitError
		require.ErrorAs(t, err, &tooLarge, name)
		require.Less(t, allocated, uint64(32<<20), name)
	}
}

// The limit on expansion is on the result, in which equal entries are one.
func TestEqualEntriesDoNotCountAsExpansion(t *testing.T) {
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
	pd, err := (&Unmarshaler{}).UnmarshalProfiles(data)
	require.NoError(t, err)
	require.Equal(t, 1, pd.SampleCount())
}
