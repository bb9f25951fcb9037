// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"golang.org/x/sync/errgroup"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/jfrwriter"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

var options = &archive.Options{MaxMemory: 64 << 20}

// read returns what the file holds, and the texts of the errors.
func read(t *testing.T, path string) (read []pprofile.Profiles, failed []string) {
	t.Helper()
	for record, err := range options.Records(archive.File{Path: path}) {
		if err == nil {
			var pd pprofile.Profiles
			if pd, err = record.Profiles(); err == nil {
				read = append(read, pd)
			}
		}
		if err != nil {
			require.ErrorAs(t, err, new(*archive.Error))
			failed = append(failed, strings.ReplaceAll(err.Error(), path, "FILE"))
		}
	}
	return read, failed
}

func write(t *testing.T, name string, parts ...[]byte) string {
	t.Helper()
	return profiletest.WriteFile(t, name, bytes.Join(parts, nil))
}

func line(record []byte) []byte { return append(slices.Clone(record), '\n') }

func pprofData(t *testing.T) []byte {
	t.Helper()
	return profiletest.Pprof(t, profiletest.HeapPprof(1, 2, 3, 4))
}

func TestRecordsRecognizesFormatsByContent(t *testing.T) {
	one, two := profiletest.Small(t), profiletest.GenerateProfiles(profiletest.NewRand(1))
	protoOne, protoTwo := profiletest.Proto(t, one), profiletest.Proto(t, two)
	jsonOne, jsonTwo := profiletest.JSON(t, one), profiletest.JSON(t, two)
	zstd := func(data []byte) []byte { return profiletest.Zstd(t, data) }
	gzip := func(data []byte) []byte { return profiletest.Gzip(t, data) }
	indented := bytes.ReplaceAll(jsonOne, []byte(","), []byte(",\n  "))
	for name, test := range map[string]struct {
		content []byte
		want    []pprofile.Profiles
	}{
		"length-prefixed":                {profiletest.Prefixed(protoOne, protoTwo), []pprofile.Profiles{one, two}},
		"length-prefixed, zstd records":  {slices.Concat(zstd(profiletest.Prefixed(protoOne)), zstd(profiletest.Prefixed(protoTwo))), []pprofile.Profiles{one, two}},
		"length-prefixed, gzip records":  {slices.Concat(gzip(profiletest.Prefixed(protoOne)), gzip(profiletest.Prefixed(protoTwo))), []pprofile.Profiles{one, two}},
		"length-prefixed, zstd as whole": {zstd(profiletest.Prefixed(protoOne, protoTwo)), []pprofile.Profiles{one, two}},
		"length-prefixed, gzip as whole": {gzip(profiletest.Prefixed(protoOne, protoTwo)), []pprofile.Profiles{one, two}},
		"contrib, compressed proto":      {slices.Concat(profiletest.Prefixed(zstd(protoOne)), profiletest.Prefixed(zstd(protoTwo))), []pprofile.Profiles{one, two}},
		"contrib, compressed JSON":       {slices.Concat(profiletest.Prefixed(zstd(jsonOne)), profiletest.Prefixed(zstd(jsonTwo))), []pprofile.Profiles{one, two}},
		"bare":                           {protoOne, []pprofile.Profiles{one}},
		"bare, gzip":                     {gzip(protoOne), []pprofile.Profiles{one}},
		"JSON lines":                     {slices.Concat(line(jsonOne), line(jsonTwo)), []pprofile.Profiles{one, two}},
		"JSON lines, last without end":   {slices.Concat(line(jsonOne), jsonTwo), []pprofile.Profiles{one, two}},
		"JSON lines, zstd records":       {slices.Concat(zstd(line(jsonOne)), zstd(line(jsonTwo))), []pprofile.Profiles{one, two}},
		"JSON lines, gzip as whole":      {gzip(slices.Concat(line(jsonOne), line(jsonTwo))), []pprofile.Profiles{one, two}},
		"one JSON object":                {jsonOne, []pprofile.Profiles{one}},
		"indented JSON":                  {indented, []pprofile.Profiles{one}},
		"empty":                          {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, failed := read(t, write(t, "any.name", test.content))
			require.Empty(t, failed)
			require.Len(t, got, len(test.want))
			for i := range got {
				requireEqual(t, test.want[i], got[i])
			}
		})
	}
}

func requireEqual(t *testing.T, want, got pprofile.Profiles) {
	t.Helper()
	require.Empty(t, expand.Diff(profiletest.Expand(t, want), profiletest.Expand(t, got)))
}

func TestRecordsReadsPprofAndText(t *testing.T) {
	legacy := "heap profile: 1: 2 [3: 4] @ heapprofile\n 1: 2 [3: 4] @ 0x1 0x2\n"
	for name, content := range map[string][]byte{
		"pprof":        pprofData(t),
		"pprof, gzip":  profiletest.Gzip(t, pprofData(t)),
		"pprof, zstd":  profiletest.Zstd(t, pprofData(t)),
		"folded":       []byte("\nmain;a 1\nmain;b 2\n"),
		"legacy pprof": []byte(legacy),
		"text of Go":   []byte("goroutine profile: total 7\n7 @ 0x401000 0x402000\n"),
		"words":        legacyCPUProfile(),
		"JFR":          recording().Bytes(),
		"JFR, gzipped": profiletest.Gzip(t, recording().Bytes()),
		"perf script":  []byte(script),
		"script, gzip": profiletest.Gzip(t, []byte(script)),
		"trace":        profiletest.GoTrace(t),
		"trace, zstd":  profiletest.Zstd(t, profiletest.GoTrace(t)),
	} {
		t.Run(name, func(t *testing.T) {
			got, failed := read(t, write(t, "any.name", content))
			require.Empty(t, failed)
			require.Len(t, got, 1)
			assert.Positive(t, got[0].SampleCount())
		})
	}
}

// script is the output of perf script, with a sample.
const script = "# ========\n# captured on    : Thu\n# ========\n#\nmy prog  26019/26020 52414.329088: cpu-clock:\n\t55 main (/bin/prog)\n\n"

// The time of the file is that of the last sample, and a large text is several records.
func TestRecordsReadsPerfScriptPartByPart(t *testing.T) {
	var text strings.Builder
	for i := 0; text.Len() < 10<<20; i++ {
		fmt.Fprintf(&text, "prog %d 100.%06d: cycles:\n\t55 main (/bin/prog)\n\n", i%7, i)
	}
	path := write(t, "any.name", []byte(text.String()))
	modified := time.Unix(1_700_000_000, 0)
	require.NoError(t, os.Chtimes(path, modified, modified))
	got, failed := read(t, path)
	require.Empty(t, failed)
	require.Greater(t, len(got), 1)
	sum := int64(0)
	for _, pd := range got {
		for _, p := range profiletest.Expand(t, pd) {
			for _, s := range p.Samples {
				sum += s.Sum.Int64()
			}
		}
	}
	assert.EqualValues(t, strings.Count(text.String(), "cycles"), sum)
	last := profiletest.Expand(t, got[len(got)-1])[0]
	assert.EqualValues(t, modified.UnixNano(), last.Time+last.Duration-1)
}

// legacyCPUProfile has one sample.
func legacyCPUProfile() (content []byte) {
	// Words of a header, of a sample with one address, and of the end. Mappings follow.
	for _, word := range []uint64{0, 3, 0, 10_000, 0, 5, 1, 0x401000, 0, 1, 0} {
		content = binary.LittleEndian.AppendUint64(content, word)
	}
	return append(content, "00400000-00500000 r-xp 00000000 00:00 1 /bin/program\n"...)
}

// recording returns one sample of a JVM.
func recording() *jfrwriter.Chunk {
	c := jfrwriter.New()
	c.Class("jdk.ThreadPark", jfrwriter.StartTime, jfrwriter.Duration, jfrwriter.Thread, jfrwriter.Stack)
	c.Event("jdk.ThreadPark", 1000, 5, 0, 0)
	return c
}

// A recording may be larger than a record. A damaged chunk does not concern the others.
func TestRecordsReadsRecordingsChunkByChunk(t *testing.T) {
	chunk := func(start int64, damaged bool) []byte {
		c := recording()
		c.Start += start // a repeated chunk is left out
		for i := range 5000 {
			c.Constant("jdk.types.Symbol", uint64(i), strings.Repeat("symbol", 10))
		}
		if damaged {
			c.Raw([]byte{0})
		}
		return c.Bytes()
	}
	whole := chunk(0, false)
	path := write(t, "large.jfr", whole, chunk(1, true), chunk(2, false), chunk(3, false))
	options := archive.Options{MaxMemory: int64(16 * len(whole))}
	var offsets []int64
	for record, err := range options.Records(archive.File{Path: path}) {
		if err != nil {
			assert.ErrorContains(t, err, fmt.Sprintf("record 2 at byte %d: jfr: chunk 2, byte ", len(whole)))
			continue
		}
		pd, err := record.Profiles()
		require.NoError(t, err)
		assert.Equal(t, 2, pd.SampleCount())
		size, err := record.DecodedSize()
		require.NoError(t, err)
		assert.Positive(t, size)
		offsets = append(offsets, record.Offset)
	}
	assert.Equal(t, []int64{0, int64(2*len(whole) + 1), int64(3*len(whole) + 1)}, offsets)
}

func TestRecordsOfADamagedTraceAreWhatPrecedesTheDamage_V1(t *testing.T) {
	data := append(profiletest.GoTrace(t), 99)
	for name, content := range map[string][]byte{"plain": data, "gzip": profiletest.Gzip(t, data)} {
		got, failed := read(t, write(t, "any.name", content))
		require.Len(t, got, 1, name)
		assert.Positive(t, got[0].SampleCount(), name)
		assert.Equal(t, []string{"FILE: record 2: execution trace: expected batch event, got event 99"}, failed, name)
	}
	got, failed := read(t, write(t, "old", []byte("go 1.21 trace\x00\x00\x00")))
	assert.Empty(t, got)
	assert.Equal(t, []string{"FILE: record 1: execution trace: the trace is of Go 1.21 or before Go 1.22: must be of Go 1.22 or later"}, failed)
}

func TestRecordsRejectsOtherFilesWithAReason(t *testing.T) {
	for content, want := range map[string]string{
		"FLR\x00\x00\x02\x00\x00":                  "FILE: record 1 at byte 0: jfr: chunk 1, byte 0: the header has 8 of 68 bytes",
		`{"a":` + strings.Repeat("[", 20_000):      "FILE: record 1 at byte 0: lists in attribute values nest deeper than 64 levels",
		"{\n" + strings.Repeat(`"a":[`, 20_000):    "FILE: lists in attribute values nest deeper than 64 levels",
		"hello\n":                                  `FILE: is not a profile: must be OTLP protobuf, OTLP/JSON, pprof, JFR, an execution trace of Go, the output of perf script or folded stacks, maybe compressed by gzip or zstd, and starts with "hello`,
		"<html>\n</html>\n":                        "FILE: is not a profile: looks like a page in HTML; want a pprof profile",
		"heap_v2/524288\n  t*: 1: 2 [0: 0]\n":      "FILE: is not a profile: looks like a heap profile of jemalloc (`jeprof --collapsed` makes folded stacks of it); want",
		"PERFILE2\x68\x00\x00\x00\x00\x00\x00\x00": "FILE: is not a profile: looks like the data of perf record (`perf script --header` prints what is accepted); want",
		"\xff\xfea\x00 \x001\x00\n\x00":            "FILE: is not a profile: is text in UTF-16, as > of Windows PowerShell writes it",
		`{"exporter": "py-spy@0.3.14", "$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": []}`: "FILE: record 1 at byte 0: is not a profile: looks like a file of speedscope; want",
		"{\n  \"$schema\" : \"https://www.speedscope.app/file-format-schema.json\"\n}\n":                                 "FILE: record 1 at byte 0: is not a profile: looks like a file of speedscope",
		"main;a 3 5\nmain;b 4 9\n":    "FILE: record 1 at byte 0: each line has two values, as difffolded.pl writes them",
		"\x7fELF\x02\x01\x01\x00\x00": `FILE: is not a profile: must be`,
		`{"traceEvents": [1]}` + "\n": "FILE: record 1 at byte 0: is not a profile: looks like a trace of Chrome; want",
		`{"events": [1]}` + "\n":      "FILE: record 1 at byte 0: is JSON without resourceProfiles",
		`{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"}}],"startTime":1}`:                 "FILE: record 1 at byte 0: is not a profile: looks like a CPU profile of V8 (.cpuprofile; ",
		"{\n  \"head\": {\n    \"callFrame\": {\"functionName\": \"(root)\"}, \"selfSize\": 0}}\n": "FILE: record 1 at byte 0: is not a profile: looks like a heap profile of V8 (.heapprofile; ",
		string(profiletest.Gzip(t, pprofData(t))[:100]):                                            "FILE: the file ends after 100 bytes, inside its gzip data: it is damaged or still being written",
		"\x1f\x8b":                                 "FILE: the file ends after 2 bytes, inside its gzip data: it is damaged or still being written",
		"\x1f\x8bnot gzip at all":                  "FILE: compressed by gzip: gzip: invalid header",
		"a;b 1\nno value at the end\n":             `FILE: record 1 at byte 0: line 2: value is "end"`,
		"\x28\xb5\x2f\xfdnot zstd at all":          "FILE: compressed by zstd: ",
		strings.Repeat("\x00", 5000):               `FILE: is not a profile: must be`,
		"\x7fELF" + strings.Repeat("\x00", 64<<20): `FILE: is not a profile: must be`, // not that it is too large
	} {
		got, failed := read(t, write(t, "any.name", []byte(content)))
		assert.Empty(t, got)
		require.Len(t, failed, 1, "%q", content)
		assert.True(t, strings.HasPrefix(failed[0], want), failed[0])
	}
	_, failed := read(t, filepath.Join(t.TempDir(), "missing"))
	assert.Equal(t, []string{"FILE: no such file or directory"}, failed)
}

func TestFoldedStacksOfOtherProgramsAreRecognized(t *testing.T) {
	for content, samples := range map[string]int{
		"main;a 31.23\nmain;b 5.0\n": 2,
		"# austin: 3.3.0\n# mode: wall\n# interval: 100\n\nP1;T1;m.py:f:3 10\n\n# duration: 23\n": 1,
		"\ufeffmain;a 3\nmain;b 4\n":   2,
		"main;f\xff 1\nmain;f\xfe 2\n": 2,
		"main\t3\n":                    1,
	} {
		got, failed := read(t, write(t, "any.name", []byte(content)))
		assert.Empty(t, failed, content)
		require.Len(t, got, 1, content)
		profiletest.RequireConforms(t, got[0])
		assert.Equal(t, samples, got[0].SampleCount(), content)
	}
}

func TestRecordsContinuesAfterDamage(t *testing.T) {
	record := func() []byte {
		return profiletest.Zstd(t, profiletest.Prefixed(profiletest.Proto(t, profiletest.Small(t))))
	}
	damaged := record()
	damaged[len(damaged)/2] ^= 0xff
	got, failed := read(t, write(t, "any.name", record(), damaged, record()))
	assert.Len(t, got, 2)
	require.Len(t, failed, 1)
	assert.Contains(t, failed[0], fmt.Sprintf("FILE: record 2 at byte %d: ", len(record())))
	assert.Contains(t, failed[0], fmt.Sprintf("skipped %d bytes", len(record())))

	lines := line(profiletest.JSON(t, profiletest.Small(t)))
	got, failed = read(t, write(t, "any.name", lines, []byte("{damaged\n"), lines))
	assert.Len(t, got, 2)
	assert.Equal(t, []string{fmt.Sprintf("FILE: record 2 at byte %d: the line is not valid JSON", len(lines))}, failed)
}

// Damage to the start of a file of the exporter hides no other record, whatever the name of the file.
func TestRecordsContinuesAfterADamagedFirstRecord_V1(t *testing.T) {
	small, pd := profiletest.Small(t), profiletest.Small(t)
	for r := rand.New(rand.NewPCG(1, 2)); pd.Dictionary().StringTable().Len() < 500; { // more than 1000 bytes when compressed
		pd.Dictionary().StringTable().Append(strconv.FormatUint(r.Uint64(), 36))
	}
	message, text := profiletest.Prefixed(profiletest.Proto(t, pd)), line(profiletest.JSON(t, pd))
	for extension, test := range map[string]struct {
		record []byte
		places []int
	}{
		"otlp.pb.zst": {profiletest.Zstd(t, message), []int{0, 4, 8, 30, 1000}},
		"otlp.jsonl":  {text, []int{0}}, // other damage may be valid JSON
	} {
		damaged := map[string][]byte{"zeros": make([]byte, len(test.record))}
		for _, place := range test.places {
			damaged[fmt.Sprintf("byte %d", place)] = damagedAt(test.record, place)
		}
		if last := len(test.record) - 1; test.record[last] == '\n' {
			damaged["zeros"][last] = '\n'
			damaged["short line"] = []byte(`{"resourceProfiles":[{` + "\n")
			damaged["text"] = []byte("damaged\n")
		}
		names := []string{"profiles-20261121T102330.123Z-000001." + extension, "profiles-20261121T102330.123Z-000001." + extension + ".1", "renamed"}
		for what, first := range damaged {
			for _, name := range names {
				t.Run(what+", "+name, func(t *testing.T) {
					got, failed := read(t, write(t, name, first, test.record, test.record))
					require.Len(t, got, 2, "%v", failed)
					requireEqual(t, pd, got[0])
					require.Len(t, failed, 1)
					assert.Contains(t, failed[0], "FILE: record 1 at byte 0: ")
					if extension != "otlp.jsonl" {
						assert.Contains(t, failed[0], fmt.Sprintf("skipped %d bytes", len(test.record)))
					}
				})
			}
		}
	}

	// Only records of the exporter tell what a file is: contrib's are not taken for them.
	contrib := profiletest.Prefixed(profiletest.Zstd(t, profiletest.Proto(t, small)))
	got, failed := read(t, write(t, "renamed", damagedAt(contrib, 4), contrib, contrib))
	assert.Empty(t, got)
	assert.Len(t, failed, 1)
}

// Nothing shows where the second record starts if the length of the first is damaged.
func TestRecordsStopsAtADamagedLength_V1(t *testing.T) {
	record := profiletest.Prefixed(profiletest.Proto(t, profiletest.Small(t)))
	for _, place := range []int{0, 2} {
		got, failed := read(t, write(t, "profiles-20261121T102330.123Z-000001.otlp.pb", damagedAt(record, place), record))
		assert.Empty(t, got)
		require.Len(t, failed, 1)
	}
}

// damagedAt returns a copy with four other bytes at a place.
func damagedAt(record []byte, place int) []byte {
	damaged := slices.Clone(record)
	for i := range 4 {
		damaged[place+i] ^= 0xff
	}
	return damaged
}

func TestRecordsReadsAFileThatIsBeingWritten_V1(t *testing.T) {
	record := profiletest.Prefixed(profiletest.Proto(t, profiletest.Small(t)))
	lines := line(profiletest.JSON(t, profiletest.Small(t)))
	for name, test := range map[string]struct{ complete, next []byte }{
		"profiles-20261121T102330.123Z-000001.otlp.pb":     {record, record},
		"profiles-20261121T102330.123Z-000001.otlp.pb.zst": {profiletest.Zstd(t, record), profiletest.Zstd(t, record)},
		"profiles-20261121T102330.123Z-000001.otlp.jsonl":  {lines, lines},
		"contrib.json": {lines, lines},
	} {
		for _, cut := range []int{1, 3, 5, len(test.next) / 2, len(test.next) - 2} {
			t.Run(fmt.Sprintf("%s, %d bytes", name, cut), func(t *testing.T) {
				got, failed := read(t, write(t, name+".partial", test.complete, test.next[:cut]))
				assert.Len(t, got, 1)
				assert.Empty(t, failed)

				got, failed = read(t, write(t, name, test.complete, test.next[:cut]))
				assert.Len(t, got, 1)
				assert.Len(t, failed, 1, "a closed file is damaged")
			})
		}
	}
}

// What another program adds after the file was found is no part of it, whether it is whole or not.
func TestRecordsOfAFileEndAtItsSize_V1(t *testing.T) {
	record := profiletest.Prefixed(profiletest.Proto(t, profiletest.Small(t)))
	lines := line(profiletest.JSON(t, profiletest.Small(t)))
	for name, test := range map[string]struct{ found, added []byte }{
		"contrib.pb":   {record, record},
		"exporter.zst": {profiletest.Zstd(t, record), profiletest.Zstd(t, record)},
		"contrib.json": {lines, lines},
		"gzipped":      {profiletest.Gzip(t, lines), profiletest.Gzip(t, lines)},
	} {
		for _, cut := range []int{1, len(test.added) / 2, len(test.added)} {
			t.Run(fmt.Sprintf("%s, %d bytes", name, cut), func(t *testing.T) {
				f, err := os.Open(write(t, name, test.found, test.added[:cut]))
				require.NoError(t, err)
				defer func() { _ = f.Close() }()
				records := 0
				for _, err := range options.RecordsOf(f, int64(len(test.found)), name) {
					require.NoError(t, err)
					records++
				}
				assert.Equal(t, 1, records)
			})
		}
	}
}

// find finds files all of which are those of other programs.
func find(paths ...string) ([]archive.File, []error) {
	return archive.Find(paths, func(string) bool { return false })
}

func TestFindListsFilesOnce(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.pb", ".hidden", "b/c.otlp", "d.pb", "e.pb.bare.partial", ".git/x"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	}
	named := filepath.Join(dir, ".hidden")
	files, failed := find(dir, filepath.Join(dir, "a.pb"), named, archive.Stdin, filepath.Join(dir, "none"))
	var paths []string
	for _, f := range files {
		paths = append(paths, strings.TrimPrefix(f.Path, dir+"/"))
	}
	assert.Equal(t, []string{".hidden", "a.pb", "b/c.otlp", "d.pb", "e.pb.bare.partial", archive.Stdin}, paths)
	require.Len(t, failed, 1)
	assert.ErrorIs(t, failed[0], os.ErrNotExist)
	files, failed = find(os.DevNull)
	assert.Empty(t, files)
	require.Len(t, failed, 1)
	assert.EqualError(t, failed[0], "open "+os.DevNull+": is not a regular file: must be a file or directory, or - for standard input")
}

// TestFindLeavesOutWhatOthersRead: it asks once, and not about what is in such a directory.
func TestFindLeavesOutWhatOthersRead(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.pb", "store/b.pb", "store/2026/c.pb", "d/e.pb"} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	}
	var asked, paths []string
	files, failed := archive.Find([]string{dir}, func(directory string) bool {
		asked = append(asked, directory)
		return filepath.Base(directory) == "store"
	})
	require.Empty(t, failed)
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	assert.Equal(t, []string{filepath.Join(dir, "a.pb"), filepath.Join(dir, "d", "e.pb")}, paths)
	assert.Equal(t, []string{dir, filepath.Join(dir, "d"), filepath.Join(dir, "store")}, asked)
}

func TestFindAcceptsThePipesOfAShell(t *testing.T) {
	from, to, err := os.Pipe()
	require.NoError(t, err)
	_, failed := find(fmt.Sprintf("/dev/fd/%d", from.Fd()))
	assert.Empty(t, failed)
	require.NoError(t, errors.Join(from.Close(), to.Close()))
}

// Programs rotate their files at any time. Between the names of a directory and the state of its files, a file had neither of its names.
func TestFindListsFilesThatAreRenamedMeanwhile_A4(t *testing.T) {
	const files, rounds = 50, 20 // few enough to be read at once
	for range rounds {
		dir := t.TempDir()
		var want []string
		for i := range files {
			path := filepath.Join(dir, fmt.Sprintf("%06d.json", i))
			require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
			want = append(want, path)
		}
		var rotating errgroup.Group
		rotating.Go(func() error {
			for _, path := range want {
				if err := os.Rename(path, path+".1"); err != nil {
					return err
				}
			}
			return nil
		})
		found, failed := find(dir)
		require.NoError(t, rotating.Wait())
		require.Empty(t, failed)
		var got []string
		for _, f := range found {
			got = append(got, strings.TrimSuffix(f.Path, ".1"))
		}
		slices.Sort(got)
		require.Equal(t, want, slices.Compact(got))
	}
}

func TestFindReportsADirectoryThatCannotBeSearched(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may search every directory")
	}
	dir := filepath.Join(t.TempDir(), "listed")
	require.NoError(t, os.Mkdir(dir, 0o700))
	for _, name := range []string{"a.pb", "b.pb"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
	}
	require.NoError(t, os.Chmod(dir, 0o600))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	files, failed := find(dir)
	assert.Empty(t, files)
	require.Len(t, failed, 1)
	assert.ErrorIs(t, failed[0], os.ErrPermission)
}

func TestFindListsAFileOnceHoweverItIsNamed(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"a.pb", "-"} {
		require.NoError(t, os.WriteFile(name, []byte("x"), 0o600))
	}
	files, failed := find("a.pb", "./a.pb", filepath.Join(dir, "a.pb"), dir, ".", archive.Stdin, "./-")
	require.Empty(t, failed)
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	assert.Equal(t, []string{"a.pb", filepath.Join(dir, "-"), archive.Stdin}, paths)
}

func TestRecordsReadsAPipe(t *testing.T) {
	record := profiletest.Prefixed(profiletest.Proto(t, profiletest.Small(t)))
	for name, content := range map[string][]byte{
		"plain":        slices.Concat(record, record),
		"zstd records": slices.Concat(profiletest.Zstd(t, record), profiletest.Zstd(t, record)),
	} {
		t.Run(name, func(t *testing.T) {
			from, to, err := os.Pipe()
			require.NoError(t, err)
			stdin := os.Stdin
			os.Stdin = from
			defer func() { os.Stdin = stdin }()
			go func() {
				_, _ = to.Write(content)
				_ = to.Close()
			}()
			got, failed := read(t, archive.Stdin)
			assert.Empty(t, failed)
			assert.Len(t, got, 2)
		})
	}
}

// TestRecordsDoesNotTrustLengths reads files that state more than they hold, and records that are
// small and take much memory when they are decoded.
func TestRecordsDoesNotTrustLengths_V1(t *testing.T) {
	small := profiletest.Proto(t, profiletest.Small(t))
	huge := binary.BigEndian.AppendUint32(nil, 1<<24-1)
	// 2 Mi samples of two bytes.
	samples := bytes.Repeat([]byte{2<<3 | 2, 0}, 2<<20)
	nest := func(field byte, content []byte) []byte {
		return append(binary.AppendUvarint([]byte{field<<3 | 2}, uint64(len(content))), content...)
	}
	bomb := nest(1, nest(2, nest(2, samples)))
	deep := []byte{1 << 3, 1}
	for range 5_000 {
		deep = nest(5, nest(1, deep))
	}
	deep = nest(2, append(nest(6, nest(2, deep)), nest(5, make([]byte, 256<<10))...))
	deepJSON := line([]byte(`{"resourceProfiles":` + strings.Repeat(`[`, 9_000) + strings.Repeat(`]`, 9_000) + strings.Repeat(" ", 1<<19) + "}"))
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"length":                  {slices.Concat(huge, small), "length of a record is 16777215: must be"},
		"length, zstd as whole":   {profiletest.Zstd(t, slices.Concat(profiletest.Prefixed(small), huge, small)), "length of a record is 16777215"},
		"samples of two bytes":    {profiletest.Prefixed(bomb), "takes about 240.0 MiB of memory, more than 16.0 MiB"},
		"lists in lists":          {profiletest.Prefixed(deep), "nest deeper than 64 levels"},
		"zstd that expands":       {profiletest.Zstd(t, bytes.Repeat([]byte{2<<3 | 2, 0}, 16<<20)), "more than 8.0 MiB"},
		"JSON lists in lists":     {deepJSON, "nest deeper than 64 levels"},
		"JSON objects":            {line([]byte(`{"resourceProfiles":[` + strings.Repeat("{},", 1<<20) + "{}]}")), "takes about"},
		"folded stacks":           {[]byte(strings.Repeat("a;b 1\n", 1<<17)), "takes about"},
		"pprof of tiny locations": {slices.Concat(pprofData(t), bytes.Repeat([]byte{4<<3 | 2, 0}, 2<<20)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			path, failed := write(t, "any.name", test.content), []string(nil)
			allocated := profiletest.AllocatedBy(func() { _, failed = read(t, path) })
			require.NotEmpty(t, failed)
			assert.Contains(t, failed[len(failed)-1], test.want)
			assert.Less(t, allocated, 2*uint64(options.MaxMemory))
		})
	}
}

// A record that does not fit says its size, if that is known, and what to raise.
func TestRecordsThatAreTooLargeNameTheSetting_V2(t *testing.T) {
	large := make([]byte, 3<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range large {
		large[i] = byte(random.Uint32())
	}
	pd := profiletest.Small(t)
	pd.ResourceProfiles().At(0).Resource().Attributes().PutEmptyBytes("large").FromRaw(large)
	record := profiletest.Prefixed(profiletest.Proto(t, pd))
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"profiles-20261121T102330.123Z-000001.otlp.pb":     {record, "the record has 3.0 MiB, more than 2.0 MiB: raise max_memory"},
		"profiles-20261121T102330.123Z-000001.otlp.pb.gz":  {profiletest.Gzip(t, record), "must be between 1 and 2097152; if it is right, raise max_memory"},
		"profiles-20261121T102330.123Z-000001.otlp.pb.zst": {profiletest.Zstd(t, record), "must be between 1 and 2097152; if it is right, raise max_memory"},
	} {
		options := archive.Options{MaxMemory: 16 << 20, Setting: "max_memory"}
		var texts []string
		for _, err := range options.Records(archive.File{Path: write(t, name, test.content)}) {
			require.Error(t, err)
			texts = append(texts, err.Error())
		}
		require.Len(t, texts, 1)
		assert.Contains(t, texts[0], test.want)
	}
}

// What the exporter writes is read within any limit, in its directory and alone.
func TestRecordsOfTheExporterAreDecodedWithinAnyLimit_V2(t *testing.T) {
	pd := profiletest.Small(t)
	for p := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0); p.Samples().Len() < 40_000; {
		p.Samples().AppendEmpty()
	}
	message := profiletest.Prefixed(profiletest.Proto(t, pd))
	small := archive.Options{MaxMemory: 16 << 20}
	for name, content := range map[string][]byte{"exporter": profiletest.Zstd(t, message), "contrib": message} {
		for record, err := range small.Records(archive.File{Path: write(t, name, content)}) {
			require.NoError(t, err)
			size, err := record.DecodedSize()
			require.NoError(t, err)
			require.Greater(t, size, small.MaxMemory/4)
			require.Less(t, size, int64(segment.MaxRecordMemory))
			_, err = record.Profiles()
			assert.Equal(t, name == "exporter", err == nil, "%s: %v", name, err)
		}
	}
}

// A part that does not fit says where it is, and what to raise.
func TestPartsThatAreTooLargeNameTheSetting_V2(t *testing.T) {
	c := recording()
	for i := range 5000 {
		c.Constant("jdk.types.Symbol", uint64(i), strings.Repeat("symbol", 10))
	}
	for name, content := range map[string][]byte{
		"jfr: ": c.Bytes(),
		"bytes of memory for the execution trace": profiletest.GoTrace(t),
		"perf script: ": []byte("prog 1 100.000001: cycles:\n\t55 main (/bin/prog)\n\n"),
	} {
		options := archive.Options{MaxMemory: 1 << 10, Setting: "max_memory"}
		var texts []string
		for record, err := range options.Records(archive.File{Path: write(t, "any.name", content)}) {
			require.Error(t, err, "%+v", record)
			texts = append(texts, err.Error())
		}
		require.Len(t, texts, 1)
		assert.Regexp(t, "^[^ ]+any.name: record 1( at byte 0)?: "+name+".*: more than the limit of [0-9]+: raise max_memory$", texts[0])
	}
}
