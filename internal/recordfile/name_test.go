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
		"profiles-20261121T102330.123Z-000001.otlp.pb":                {Time: begun, Sequence: 1, Format: Format{Content: OTLPProto}},
		"profiles-20261121T102330.123Z-000042.otlp.pb.zst":            {Time: begun, Sequence: 42, Format: Format{Content: OTLPProto, Compression: Zstd}},
		"profiles-20261121T102330.123Z-1234567.otlp.pb.gz":            {Time: begun, Sequence: 1234567, Format: Format{Content: OTLPProto, Compression: Gzip}},
		"profiles-20261121T102330.123Z-000001.otlp.jsonl":             {Time: begun, Sequence: 1, Format: Format{Content: OTLPJSON}},
		"profiles-20261121T102330.123Z-000001.otlp.jsonl.zst.partial": {Time: begun, Sequence: 1, Format: Format{OTLPJSON, Zstd}, Partial: true},
		"profiles-20261121T102330.123Z-000001.1h0m0s.otlp.pb.zst":     {Time: begun, Sequence: 1, Format: Format{Content: OTLPProto, Compression: Zstd}, Span: time.Hour},
		"profiles-20261121T102330.123Z-000001.otlp.pb.partial":        {Time: begun, Sequence: 1, Format: Format{OTLPProto, None}, Partial: true},
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
		"profiles-20261121T102330.123Z-0000001.otlp.pb", "profiles-20261121T102330.123Z-1.otlp.pb", // not as we write it
		"profiles-20261121T102330.123Z-000001.60m.otlp.pb", "profiles-20261121T102330.123Z-000001.0s.otlp.pb",
		"profiles-20261121T102330Z-000001.otlp.pb", "profiles-20261121T102330.123Z-99999999999999999999.otlp.pb",
		"cpu-20261121T102330.123Z-000001.otlp.pb", "profiles-20261121T102330.123Z-000001.pprof.pb.gz", "profiles-20261121T102330.123Z--00001.otlp.pb",
	} {
		_, ok := ParseName(text)
		assert.False(t, ok, text)
	}
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
