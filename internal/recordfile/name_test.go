// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	begun := time.Date(2026, 11, 21, 10, 23, 30, 123_000_000, time.UTC)
	for text, want := range map[string]Name{
		"profiles-20261121T102330.123Z-000001.otlp.pb":                {begun, 1, Format{Content: OTLPProto}, false},
		"profiles-20261121T102330.123Z-000042.otlp.pb.zst":            {begun, 42, Format{Content: OTLPProto, Compression: Zstd}, false},
		"profiles-20261121T102330.123Z-1234567.otlp.pb.gz":            {begun, 1234567, Format{Content: OTLPProto, Compression: Gzip}, false},
		"profiles-20261121T102330.123Z-000001.otlp.jsonl":             {begun, 1, Format{Content: OTLPJSON}, false},
		"profiles-20261121T102330.123Z-000001.otlp.jsonl.zst.partial": {begun, 1, Format{OTLPJSON, Zstd}, true},
		"profiles-20261121T102330.123Z-000001.otlp.pb.partial":        {begun, 1, Format{OTLPProto, None}, true},
	} {
		parsed, ok := ParseName(text)
		require.True(t, ok, text)
		assert.Equal(t, want, parsed)
		assert.Equal(t, text, want.String())
	}
}

func TestNamesOfOthers(t *testing.T) {
	for _, text := range []string{
		"", "profiles", "profiles-", "x-profiles-20261121T102330.123Z-000001.otlp.pb",
		"profiles-20261121T102330.123Z-000001", "profiles-20261121T102330.123Z-000001.otlp.pb\n",
		"profiles-20261121T102330.123Z-000001.otlp.pb.bare", "profiles-20261121T102330.123Z-000001.otlp.pb.lz4",
		"profiles-20261121T102330.123Z-0000001.otlp.pb", // not as we write it
		"profiles-20261121T102330Z-000001.otlp.pb", "profiles-20261121T102330.123Z-99999999999999999999.otlp.pb",
		"cpu-20261121T102330.123Z-000001.otlp.pb", "profiles-20261121T102330.123Z-000001.pprof.pb.gz", "profiles-20261121T102330.123Z--00001.otlp.pb",
	} {
		_, ok := ParseName(text)
		assert.False(t, ok, text)
	}
}

func FuzzParseName(f *testing.F) {
	f.Add("profiles-20261121T102330.123Z-000001.otlp.pb.zst.partial")
	f.Add("profiles-20261121T102330.123Z-000001.otlp.jsonl")
	f.Fuzz(func(t *testing.T, text string) {
		if name, ok := ParseName(text); ok && name.String() != text {
			t.Errorf("%q is read as %q", text, name)
		}
	})
}

func TestNamesGrowThoughTheClockGoesBack(t *testing.T) {
	n := names{format: allFormats[0]}
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	last := ""
	for _, step := range []time.Duration{0, 0, time.Millisecond, -time.Hour, time.Minute, 2 * time.Hour} {
		now = now.Add(step)
		name := n.next(now).String()
		assert.Greater(t, name, last)
		last = name
	}
	assert.Equal(t, "profiles-20261121T110100.001Z-000006.otlp.pb", last)
}
