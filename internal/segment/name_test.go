// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	begun := time.Date(2026, 11, 21, 10, 23, 30, 123_000_000, time.UTC)
	for text, want := range map[string]Name{
		"profiles-20261121T102330.123Z-000001.otlp.pb":                 {"", begun, 1, Format{Content: OTLPProto}, false},
		"profiles-20261121T102330.123Z-000042.otlp.pb.zst":             {"", begun, 42, Format{Content: OTLPProto, Compression: Zstd}, false},
		"profiles-20261121T102330.123Z-1234567.otlp.pb.gz":             {"", begun, 1234567, Format{Content: OTLPProto, Compression: Gzip}, false},
		"profiles-20261121T102330.123Z-000001.otlp.jsonl":              {"", begun, 1, Format{Content: OTLPJSON}, false},
		"profiles-20261121T102330.123Z-000001.otlp.jsonl.zst.partial":  {"", begun, 1, Format{OTLPJSON, false, Zstd}, true},
		"profiles-20261121T102330.123Z-000001.otlp.pb.partial":         {"", begun, 1, Format{OTLPProto, false, None}, true},
		"profiles-20261121T102330.123Z-000001.otlp.pb.gz.bare.partial": {"", begun, 1, Format{OTLPProto, true, Gzip}, true},
		"cpu-20261121T102330.123Z-000001.pprof.pb.gz":                  {"cpu", begun, 1, Format{Content: Pprof, Compression: Gzip}, false},
		"a-b.c-20261121T102330.123Z-000001.pprof.pb.gz.bare.partial":   {"a-b.c", begun, 1, Format{Pprof, true, Gzip}, true},
		"profiles-20261121T102330.123Z-000001.pprof.pb.gz":             {"", begun, 1, Format{Content: Pprof, Compression: Gzip}, false},
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
		"cpu-20261121T102330.123Z-000001.otlp.pb", // types are for pprof only
		"-20261121T102330.123Z-000001.pprof.pb.gz", ".a-20261121T102330.123Z-000001.pprof.pb.gz", "a/b-20261121T102330.123Z-000001.pprof.pb.gz",
		"profiles-20261121T102330.123Z-000001.pprof.xml", "profiles-20261121T102330.123Z--00001.otlp.pb",
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

// TestTypesOfPprofFilesNeverShareAName: whatever a client sends as the profile type, the file is
// in the directory, and recovery and retention recognize it.
func TestTypesOfPprofFilesNeverShareAName_E10(t *testing.T) {
	long := strings.Repeat("x", 5000)
	types := []string{
		"cpu", "CPU", "mutex", "block", "", "profiles", "%70rofiles", "_empty", ".", "..", "../../etc/passwd", "/abs", `..\a`, "nul", "a\x00b",
		"a b", "a-20261121T102330.123Z-000001", "-rf", "~", "\xff", "\n", "*", long, long + "y", "cpu-", "cpu.",
	}
	dir := filepath.Join(t.TempDir(), "profiles")
	w := openTestWriter(t, dir, Options{Format: Format{Content: Pprof, Compression: Gzip}})
	for range 2 {
		for _, profileType := range types {
			require.NoError(t, w.Append(Record{Data: []byte("\x08\x01"), Type: profileType}))
		}
	}
	require.NoError(t, w.Close())
	files := map[string]int{}
	for _, name := range list(t, dir) {
		parsed, ok := ParseName(name)
		require.True(t, ok, name)
		files[parsed.Prefix]++
	}
	assert.Len(t, files, len(types), "a name for each type")
	for prefix, n := range files {
		assert.Equal(t, 2, n, prefix)
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing is outside the directory")
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
