// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator_test

import (
	"encoding/binary"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// legacyCPU is a CPU profile with one sample. The words of Java's have a 1 in the header, and no addresses but IDs.
func legacyCPU(appendWord func([]byte, uint64) []byte, java uint64) []byte {
	var content []byte
	for _, word := range []uint64{0, 3, java, 10_000, 0, 5, 1, 0x401000, 0, 1, 0} {
		content = appendWord(content, word)
	}
	if java == 1 {
		return append(content, "\n0x401000 shop.Cart.total (Cart.java:7)\n"...)
	}
	return append(content, "00400000-00500000 r-xp 00000000 00:00 1 /bin/program\n"...)
}

func legacyProfiles() map[string][]byte {
	word32 := func(order binary.AppendByteOrder) func([]byte, uint64) []byte {
		return func(b []byte, v uint64) []byte { return order.AppendUint32(b, uint32(v)) }
	}
	const sample = "     1:  2048 [     3:  8192] @ 0x401000 0x402000\n"
	const mapping = "00400000-00500000 r-xp 00000000 00:00 1 /bin/program\n"
	const mapped, memoryMap = "\nMAPPED_LIBRARIES:\n" + mapping, "--- Memory map: ---\n" + mapping
	all := map[string][]byte{
		"heap":       []byte("heap profile:     1:  2048 [     3:  8192] @ heapprofile\n" + sample + mapped),
		"heap_v2":    []byte("heap profile:     1:  2048 [     3:  8192] @ heap_v2/524288\n" + sample + mapped),
		"heapz_v2":   []byte("heap profile:     1:  2048 [     3:  8192] @ heapz_v2/524288\n" + sample + mapped),
		"growth":     []byte("heap profile:     1:  2048 [     1:  2048] @ growthz\n     1:  2048 [     1:  2048] @ 0x401000\n" + mapped),
		"contention": []byte("--- contentionz 1 ---\ncycles/second = 1000000000\nsampling period = 100\nms since reset = 50\n   900 3 @ 0x401000 0x402000\n" + memoryMap),
		"threads":    []byte("--- threadz 1 ---\n\n--- Thread 7f (name: main/1) stack: ---\n  PC:  0x401000: main\n  0x402000: start\n" + memoryMap),
		"Java heap":  []byte("--- heapz 1 ---\nformat = java\nresolution = bytes\n     2048 1 @ 0x1\n\n0x1 shop.Cart.total (Cart.java:7)\n"),
		"Java contention": []byte("--- contentionz 1 ---\nformat = java\nresolution = microseconds\nsampling period = 100\nms since reset = 50\n" +
			"     900 3 @ 0x1\n\n0x1 shop.Cart.total (Cart.java:7)\n"),
		"goroutines as text": []byte("goroutine profile: total 7\n7 @ 0x401000 0x402000\n#\t0x400fff\tmain.work+0x1\t/src/main.go:7\n"),
	}
	for java, name := range []string{"CPU", "Java CPU"} {
		all[name+", 64 bits"] = legacyCPU(binary.LittleEndian.AppendUint64, uint64(java))
		all[name+", 64 bits, big-endian"] = legacyCPU(binary.BigEndian.AppendUint64, uint64(java))
		all[name+", 32 bits"] = legacyCPU(word32(binary.LittleEndian), uint64(java))
		all[name+", 32 bits, big-endian"] = legacyCPU(word32(binary.BigEndian), uint64(java))
	}
	return all
}

// The profile equals what google/pprof reads, sample by sample.
func requireLegacy(t *testing.T, data []byte) {
	t.Helper()
	require.True(t, pproftranslator.IsLegacy(data))
	want, err := profile.ParseData(data)
	require.NoError(t, err)
	require.NotEmpty(t, want.Sample)
	_, err = (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(data)
	require.ErrorContains(t, err, "looks like a profile in a format from before protobuf")
	message, err := pproftranslator.ConvertLegacy(data)
	require.NoError(t, err)
	pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(message)
	require.NoError(t, err)
	profiletest.RequireConforms(t, pd)
	got := profiletest.Expand(t, pd)
	require.Empty(t, expand.Diff(expand.Normalize(expand.Pprof(want), expand.AsPprof), expand.Normalize(got, expand.AsPprof)))
}

func TestConvertLegacyReadsWhatGooglePprofReads(t *testing.T) {
	for name, data := range legacyProfiles() {
		t.Run(name, func(t *testing.T) { requireLegacy(t, data) })
	}
}

func TestConvertLegacyReadsTheCorpus(t *testing.T) {
	found := 0
	for _, file := range profiletest.Corpus(t) {
		if file.Legacy != nil {
			found++
			t.Run(file.Name, func(t *testing.T) { requireLegacy(t, file.Legacy) })
		}
	}
	assert.Equal(t, 5, found)
}

func TestConvertLegacyLimitsSizeAndMemory(t *testing.T) {
	_, err := pproftranslator.ConvertLegacy(make([]byte, pproftranslator.MaxLegacySize+1))
	var limit *pproftranslator.LimitError
	require.ErrorAs(t, err, &limit)
	assert.EqualValues(t, 8<<20, limit.Limit)

	for name, data := range legacyProfiles() {
		message, err := pproftranslator.ConvertLegacy(data)
		require.NoError(t, err)
		work, result := (&pproftranslator.Unmarshaler{}).Memory(message)
		assert.LessOrEqual(t, int64(len(message))+work+result, pproftranslator.LegacyMemory(data)+32<<10, name)
	}
}

func TestConvertLegacyRejectsDamage(t *testing.T) {
	for _, text := range []string{"heap profile: damaged\n", "--- symbol 1 ---\n", "\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00"} {
		require.True(t, pproftranslator.IsLegacy([]byte(text)), text)
		_, err := pproftranslator.ConvertLegacy([]byte(text))
		require.ErrorContains(t, err, "pprof from before protobuf: ")
	}
	for _, text := range []string{"", "main;work 10\n", "heap_v2/524288\n  t*: 1: 2 [0: 0]\n", "{}"} {
		assert.False(t, pproftranslator.IsLegacy([]byte(text)), text)
	}
}
