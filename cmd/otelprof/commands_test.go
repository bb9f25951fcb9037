// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/s3test"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const exampleTrace = "4bf92f3577b34da6a3ce929d0e0e4736"

// typed translates a pprof as of a profile type of the service checkout that starts some time ago.
func typed(t testing.TB, p *profile.Profile, typ string, ago time.Duration) pprofile.Profiles {
	t.Helper()
	p.TimeNanos = time.Now().Add(-ago).UnixNano()
	for _, s := range p.Sample {
		s.Label = map[string][]string{"trace_id": {exampleTrace}, "span_id": {"00f067aa0ba902b7"}}
	}
	pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(profiletest.Pprof(t, p))
	require.NoError(t, err)
	pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().PutStr(attrkey.ProfileType, typ)
	return payloadtest.With(pd, "service.name", "checkout")
}

func cpuPprof(nanoseconds int64) *profile.Profile {
	return withStartLines(cpuRun(map[string]int64{"main.encode": nanoseconds / 1e7}))
}

// exampleDirectory has the files that the examples of the help name.
func exampleDirectory(t testing.TB) string {
	t.Helper()
	payloads := []pprofile.Profiles{
		typed(t, cpuPprof(4e9), "cpu", 90*time.Minute), typed(t, cpuPprof(2e9), "cpu", 30*time.Minute),
		typed(t, profiletest.HeapPprof(1, 2, 3, 4096), "heap", 20*time.Minute),
	}
	for i, track := range []string{"stable", "canary"} {
		payloadtest.With(payloads[i], "service.name", "checkout", "track", track)
	}
	dir := filepath.Dir(written(t, payloads))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "payload.otlp.pb"), profiletest.Proto(t, payloads[0]), 0o600))
	var cpu bytes.Buffer
	require.NoError(t, cpuPprof(1e9).Write(&cpu))
	for _, path := range []string{"cpu.pb.gz", "base/1.pb.gz", "base/2.pb.gz", "new/1.pb.gz", "new/2.pb.gz"} {
		path = filepath.Join(dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, cpu.Bytes(), 0o600))
	}
	return dir
}

// TestExamplesOfTheHelpRun runs each example up to a pipe. Those of view run until they serve.
func TestExamplesOfTheHelpRun(t *testing.T) {
	t.Chdir(exampleDirectory(t))
	examples := 0
	for _, command := range (&app{}).command().Commands() {
		for line := range strings.Lines(command.Example) {
			if line = strings.TrimSpace(line); line != "" {
				examples++
				runExample(t, line)
			}
		}
	}
	assert.GreaterOrEqual(t, examples, 12)
}

// TestExamplesOfThePageRun runs the indented calls of otelprof in README.md. An end-to-end test runs the others.
func TestExamplesOfThePageRun(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	t.Chdir(exampleDirectory(t))
	examples := regexp.MustCompile(`(?m)^    (otelprof .*)$`).FindAllStringSubmatch(string(page), -1)
	assert.GreaterOrEqual(t, len(examples), 2)
	for _, example := range examples {
		runExample(t, example[1])
	}
}

func runExample(t *testing.T, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " | ")
	arguments := strings.Fields(line)
	require.Equal(t, "otelprof", arguments[0], line)
	t.Run(line, func(t *testing.T) {
		if arguments[1] == "view" {
			_, stop := serving(t, strings.Fields(strings.TrimPrefix(strings.Replace(line, "localhost:8080", "localhost:0", 1), "otelprof "))...)
			stop()
			return
		}
		code, stdout, stderr := otelprof(t, arguments[1:]...)
		assert.Equal(t, exitOK, code, stderr)
		isAsked := arguments[1] != "mcp" // its input is at its end
		assert.True(t, stdout != "" || strings.Contains(line, " -o ") || !isAsked, "no output")
	})
}

// serving runs otelprof view and returns the address of the page. stop ends it.
func serving(t *testing.T, args ...string) (url string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	from, to := io.Pipe()
	ended := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		ended <- run(ctx, append(args, "--no-browser"), to, &stderr)
		_ = to.Close()
	}()
	first := make([]byte, 1000)
	n, err := from.Read(first)
	require.NoError(t, err, &stderr)
	url = regexp.MustCompile(`http://\S+`).FindString(string(first[:n]))
	require.NotEmpty(t, url)
	return url, func() {
		cancel()
		require.Equal(t, exitOK, <-ended, &stderr)
	}
}

// TestViewServesThePagesReadOnly: which pages there are is tested where they are made.
func TestViewServesThePagesReadOnly(t *testing.T) {
	url, stop := serving(t, "view", "--type", "cpu", filepath.Join(exampleDirectory(t), "profiles"))
	defer stop()
	site, _, _ := strings.Cut(url, "?")
	request := func(method, url, host string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		require.NoError(t, err)
		r.Host = host
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, errors.Join(err, response.Body.Close()))
		return response.StatusCode, string(body)
	}
	for _, page := range []string{url, site} { // the second one redirects
		status, body := request(http.MethodGet, page, "")
		assert.Equal(t, http.StatusOK, status, page)
		assert.Contains(t, body, "main.encode", page)
	}
	_, body := request(http.MethodGet, strings.Replace(url, "/?", "/api/profile?", 1), "")
	assert.Equal(t, int64(6e9), profiletest.Sums(parse(t, []byte(body)))["cpu/nanoseconds"])
	status, _ := request(http.MethodPost, site, "")
	assert.Equal(t, http.StatusMethodNotAllowed, status)
	status, _ = request(http.MethodGet, site, "attacker.example:80")
	assert.Equal(t, http.StatusMisdirectedRequest, status)
}

// TestViewComparesFilesOfAnyTime: files of other programs may state no time, and a base is another file. Standard input is read for each page.
func TestViewComparesFilesOfAnyTime(t *testing.T) {
	before := profiletest.WriteFile(t, "before.folded", []byte("main;work 100\nmain;gone 50\n"))
	after := profiletest.WriteFile(t, "after.folded", []byte("main;work 300\n"))
	url, stop := serving(t, "view", "--base", before, after)
	defer stop()
	for range 2 {
		response, err := http.Get(url)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, errors.Join(err, response.Body.Close()))
		assert.Contains(t, string(body), `"gone"`)
		assert.NotContains(t, string(body), `class="chart main"`, "nothing has a time")
		assert.Regexp(t, `"self":\[\[[0,]*300[0,]*\],\[[0,]*(100|50),(100|50)[0,]*\]\]`, string(body))
	}
}

func TestExitCodes(t *testing.T) {
	dir := exampleDirectory(t)
	profiles, cpu := filepath.Join(dir, "profiles"), filepath.Join(dir, "cpu.pb.gz")
	for _, test := range []struct {
		args string
		code int
		says string
	}{
		{"ls " + cpu, exitOK, ""},
		{"ls", exitUsage, "no PATH: name files or directories, or - for standard input"},
		{"list " + cpu, exitUsage, `unknown command "list"`},
		{"ls --nothing " + cpu, exitUsage, "unknown flag: --nothing\notelprof: run 'otelprof ls --help' for usage\n"},
		{"ls --from yesterday " + cpu, exitUsage, `--from is "yesterday": must be a time such as 2026-11-22T10:00:00Z, or relative to now, such as -15m or -7d`},
		{"ls --from -1h --to -2h " + cpu, exitUsage, `--to is "-2h": must be a range: --from before --to`},
		{"ls --trace-id 12 " + cpu, exitUsage, `--trace-id is "12": must be 32 hex digits`},
		{"ls --profile-id 12 " + cpu, exitUsage, `--profile-id is "12": must be 32 hex digits that are not all 0, or a UUID`},
		{"ls --profile-id 7c9e6679-7425-40de-944b-e07fc1f90ae7 " + profiles, exitWrong, "no profiles match the selection"},
		{"ls --label a " + cpu, exitUsage, `--label is "a": must be KEY=VALUE`},
		{`ls --label {pod=~"` + strings.Repeat("(x?){1000}", 3) + `"} ` + cpu, exitUsage, "must have at most 10000 instructions in total"},
		{`ls --label {pod=~"` + strings.Repeat("(x?){1000}", 1000) + `"} ` + cpu, exitUsage, "is a regular expression of 10000 bytes: must have at most 8192"},
		{"ls" + strings.Repeat(" --label pod=a", 101) + " " + cpu, exitUsage, `--label is "pod=a": must have at most 100 labels`},
		{"ls --max-memory 64mib " + cpu, exitUsage, `--max-memory is "64mib": must be`},
		{"ls --max-memory 1MiB " + cpu, exitUsage, "--max-memory is 1MiB: must be at least 16MiB"},
		{"convert " + cpu, exitUsage, "no --format FORMAT: must be one of pprof, otlp, json, folded, parquet"},
		{"convert --format svg " + cpu, exitUsage, `--format is "svg": must be one of pprof, otlp, json, folded, parquet`},
		{"convert --to svg " + cpu, exitUsage, `--to is "svg": must be a time such as`},
		{"convert --format folded " + cpu, exitOK, "Folded stacks hold one sample type: cpu, the default of 2; select another with --type\n"},
		{"top " + profiles, exitUsage, "the selection has several profile types: cpu; heap\notelprof: select one with --type\n"},
		{"top --base - -", exitUsage, "standard input can be read only once: name a file to compare it with itself"},
		{"convert --format pprof --base-from -1h -", exitUsage, "standard input can be read only once"},
		{"convert --format parquet --base " + cpu + " " + cpu, exitUsage, "a Parquet file holds samples, not a difference: leave out --base, --base-from and --base-to"},
		{"convert --format parquet --service other " + profiles, exitWrong, "no profiles match the selection"},
		{"view --http 8080 " + cpu, exitUsage, `--http is "8080": must be HOST:PORT`},
		{"ls --service other " + profiles, exitWrong, "no profiles match the selection\n"},
		{"top --service other " + profiles, exitWrong, "no profiles match the selection\notelprof: otelprof ls lists"},
		{"check --service other " + profiles, exitWrong, "no profiles match the selection"},
		{"cat --service other " + profiles, exitWrong, "no profiles match the selection"},
		{"top --base " + profiles + " --base-from -48h --base-to -47h --type cpu " + profiles, exitWrong, "base: no profiles match the selection"},
		{"ls " + filepath.Join(dir, "none"), exitWrong, "otelprof: " + filepath.Join(dir, "none") + ": no such file or directory\n"},
		{"ls " + t.TempDir(), exitWrong, "no files in /"},
		{"convert --format pprof -o " + dir + " " + cpu, exitWrong, "is a directory"},
	} {
		code, _, stderr := otelprof(t, strings.Fields(test.args)...)
		assert.Equal(t, test.code, code, test.args)
		assert.Contains(t, stderr, test.says, test.args)
	}
}

func TestProfilesAreFoundByID(t *testing.T) {
	pd := typed(t, cpuPprof(4e9), "cpu", time.Hour)
	id, i := "7c9e6679-7425-40de-944b-e07fc1f90ae7", byte(0)
	for p := range sampletypes.ProfilesOf(pd) {
		p.SetProfileID([16]byte{0x7c, 0x9e, 0x66, 0x79, 0x74, 0x25, 0x40, 0xde, 0x94, 0x4b, 0xe0, 0x7f, 0xc1, 0xf9, 0x0a, 0xe7 + i})
		i++
	}
	file := profiletest.WriteFile(t, "profiles", slices.Concat(
		profiletest.Prefixed(profiletest.Proto(t, typed(t, cpuPprof(2e9), "cpu", 30*time.Minute))), profiletest.Prefixed(profiletest.Proto(t, pd))))
	rows := strings.Split(strings.TrimSpace(succeed(t, "ls", "--profile-id", id, file)), "\n")
	require.Len(t, rows, 1+1)
	assert.Contains(t, rows[1], "4 s", "the first Profile, of the CPU time")
}

// TestTextOfFilesCannotControlTheTerminal_V7: what convert and cat write is data.
func TestTextOfFilesCannotControlTheTerminal_V7(t *testing.T) {
	p := cpuPprof(1e9)
	p.Function[0].Name, p.Function[0].Filename = "a\x1b]0;title\ab\rc\td", "\x1b.go"
	p.SampleType[1].Type, p.Comments = "cpu\x1b[31m", []string{"\x1b[2J"}
	p.Mapping = []*profile.Mapping{{ID: 1, File: "/bin/\x1b[2J"}}
	data := profiletest.Gzip(t, profiletest.Pprof(t, p))
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cpu.pb.gz"), data, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "no\x1b[31mprofile\n"), []byte("vm"), 0o600))
	for _, command := range []string{"ls", "top", "check"} {
		_, stdout, stderr := otelprof(t, command, dir)
		for _, control := range []string{"\x1b", "\a", "\r"} {
			assert.NotContains(t, stdout+stderr, control, command)
		}
		assert.Contains(t, stderr, `no\x1b[31mprofile\n: is not a profile`, command)
		if command == "top" {
			assert.Contains(t, stdout, `a\x1b]0;title\ab\rc\td`)
		}
	}
}

// TestUnreadableFilesAreReportedOnce: no command says that nothing matches, too.
func TestUnreadableFilesAreReportedOnce(t *testing.T) {
	path := profiletest.WriteFile(t, "text", []byte("vm\n"))
	for _, command := range []string{"ls", "top", "check", "cat", "convert --format pprof"} {
		code, _, stderr := otelprof(t, append(strings.Fields(command), path)...)
		assert.Equal(t, exitWrong, code, command)
		assert.Equal(t, 1, strings.Count(stderr, "\n"), "%s: %s", command, stderr)
	}
}

func TestEmptyFilesAreNamed(t *testing.T) {
	path := profiletest.WriteFile(t, "cpu.pb.gz", nil)
	for _, command := range []string{"ls", "top", "check", "grew"} {
		code, stdout, stderr := otelprof(t, command, path)
		assert.Equal(t, exitWrong, code, command)
		assert.Equal(t, "otelprof: "+path+": is empty: must be a profile\n", stderr, "%s: %s", command, stdout)
	}
	// In a directory, it may belong to a program that has not written yet.
	code, stdout, stderr := otelprof(t, "ls", exampleDirectory(t), filepath.Dir(path))
	assert.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stdout, "checkout")
}

func TestHelpFitsIntoATerminal(t *testing.T) {
	for _, command := range append((&app{}).command().Commands(), &cobra.Command{}) {
		for line := range strings.Lines(succeed(t, command.Name(), "--help")) {
			assert.LessOrEqual(t, len(strings.TrimSpace(line)), 80, line)
		}
	}
}

func TestConvertComparesRates(t *testing.T) {
	profiles := filepath.Join(exampleDirectory(t), "profiles")
	for _, length := range []string{"-2h", "-3h"} { // how long the range of the base is does not matter
		code, folded, stderr := otelprof(t, "convert", "--format", "folded", "--type", "cpu:cpu", "--from", "-1h", "--base-from", length, "--base-to", "-1h", profiles)
		require.Equal(t, exitOK, code, stderr)
		assert.Equal(t, "main.main;main.encode -2000000000\n", folded, "2 cores after 4")
	}

	difference := succeed(t, "convert", "--format", "json", "--type", "cpu:cpu", "--from", "-1h", "--base-from", "-2h", "--base-to", "-1h", profiles)
	assert.Contains(t, difference, `"checkout"`, "the resource of the selection")
	assert.Contains(t, difference, `"-2000000000"`)
}

func TestCatWritesAPayloadALine(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(succeed(t, "cat", "--type", "cpu", filepath.Join(exampleDirectory(t), "profiles"))), "\n")
	require.Len(t, lines, 2)
	for _, line := range lines {
		profiletest.RequireConforms(t, profiletest.UnmarshalJSON(t, []byte(line)))
	}
}

func TestFoldedStacksAreSummed(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a": "main;f 1\n", "b": "main;f 2\nmain;g 4\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	assert.Equal(t, "main;f 3\nmain;g 4\n", succeed(t, "convert", "--format", "folded", dir))
	assert.Contains(t, succeed(t, "check", dir), "Checked 2 records in 2 files, 2 of them as translated to OTLP, against")
}

// TestReportsStayWithinMaxMemory_V2: each of the functions takes a node of a tree. The table has none.
func TestReportsStayWithinMaxMemory_V2(t *testing.T) {
	var stack strings.Builder
	for i := range 30_000 {
		_, _ = fmt.Fprintf(&stack, "f%d;", i)
	}
	path := profiletest.WriteFile(t, "deep", []byte(stack.String()+"leaf 1\n"))
	succeed(t, "top", "--max-memory=64MiB", path)
}

func TestSumsThatOverflowAreRejectedOrMarked(t *testing.T) {
	const most = "f 9223372036854775807\n"
	one, two, other := profiletest.WriteFile(t, "one", []byte(most)), profiletest.WriteFile(t, "two", []byte(most)), profiletest.WriteFile(t, "other", []byte("g 1\n"))
	for _, command := range []string{
		"convert --format pprof " + one + " " + two, "convert --format folded " + one + " " + two, "top " + one + " " + two,
		"top " + one + " " + other,
	} {
		code, stdout, stderr := otelprof(t, strings.Fields(command)...)
		assert.Equal(t, exitWrong, code, command)
		assert.Empty(t, stdout, command)
		assert.Contains(t, stderr, " does not fit into 64 bits; select less, by service, type or time", command)
	}
	// A conversion keeps values of which only the total does not fit.
	assert.Equal(t, most+"g 1\n", succeed(t, "convert", "--format", "folded", one, other))
	assert.Len(t, parse(t, []byte(succeed(t, "convert", "--format", "pprof", one, other))).Sample, 2)
	assert.Contains(t, succeed(t, "top", one), "100.00 %")
	assert.Contains(t, succeed(t, "ls", one, two), " >= 9223372036854775807 ")
	assert.True(t, rows(t, one, two)[0].Saturated)
	assert.NotContains(t, succeed(t, "ls", other), "=")
	assert.False(t, rows(t, other)[0].Saturated)
}

func TestConvertReadsBackWhatItWrites(t *testing.T) {
	dir := exampleDirectory(t)
	for _, format := range []string{"otlp", "json", "pprof"} {
		path := filepath.Join(t.TempDir(), "converted")
		succeed(t, "convert", "--format", format, "-o", path, filepath.Join(dir, "cpu.pb.gz"))
		assert.Equal(t, rows(t, filepath.Join(dir, "cpu.pb.gz")), rows(t, path), format)
	}
	folded := succeed(t, "convert", "--format", "folded", "--type", "cpu:cpu", filepath.Join(dir, "payload.otlp.pb"))
	path := profiletest.WriteFile(t, "folded", []byte(folded))
	assert.Equal(t, folded, succeed(t, "convert", "--format", "folded", path))
	assert.Contains(t, succeed(t, "top", path), "main.encode")
}

func TestCheckNamesPlaceRuleAndWhatIsWanted(t *testing.T) {
	pd := profiletest.Small(t)
	pd.Dictionary().StringTable().Append("nobody refers to it")
	path := profiletest.WriteFile(t, "payload.otlp.pb", profiletest.Proto(t, pd))
	assert.Contains(t, succeed(t, "check", path), "0 violations, 1 warning\n")

	pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(1).Samples().At(0).SetStackIndex(99)
	path = profiletest.WriteFile(t, "payload.otlp.pb", profiletest.Proto(t, pd))
	code, stdout, stderr := otelprof(t, "check", path)
	assert.Equal(t, exitWrong, code)
	assert.Empty(t, stderr)
	assert.Contains(t, stdout, path+": record 1: violation: index range: resource_profiles[0].scope_profiles[0].profiles[1].samples[0].stack_index is 99: must be an index of dictionary.stack_table")
	assert.Regexp(t, `: warning: unreferenced: dictionary.string_table\[\d+\] is "nobody refers to it": must be`, stdout)
	assert.Regexp(t, `(?m)^index range +violation +1$`, stdout)
	assert.Contains(t, stdout, "Checked 1 record in 1 file against opentelemetry-proto v1.11.0")

	code, stdout, _ = otelprof(t, "check", "--json", path)
	assert.Equal(t, exitWrong, code)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var found finding
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &found))
	assert.Equal(t, path, found.File)
	assert.NotEmpty(t, found.Wanted)
	var last map[string]summary
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
	assert.Equal(t, 1, last["summary"].Violations["index range"])
	assert.NotEmpty(t, last["summary"].Warnings)
}

func TestDamagedFilesAreNamedAndTheOthersShown_V1(t *testing.T) {
	profiles := filepath.Join(exampleDirectory(t), "profiles")
	want := rows(t, profiles)
	for name, content := range map[string]string{
		"garbage":                  "\x00\x01\x02\x03garbage",
		"lies.otlp.pb":             "\x00\x7f\xff\xff\x0a\x00",
		"truncated.json":           `{"resourceProfiles":[{"sc`,
		"empty":                    "",
		"recording.jfr":            "FLR\x00\x00\x02\x00\x01",
		"damaged.pb.gz":            "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x00damage",
		"is.being.written.partial": "\x00\x00\x00\x7f\x0a\x7d",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(profiles, name), []byte(content), 0o600))
	}
	code, stdout, stderr := otelprof(t, "ls", "--json", profiles)
	assert.Equal(t, exitWrong, code)
	assert.Equal(t, want, rowsIn(t, stdout))
	for _, name := range []string{"garbage", "lies.otlp.pb", "truncated.json", "recording.jfr", "damaged.pb.gz"} {
		assert.Regexp(t, `(?m)^otelprof: `+regexp.QuoteMeta(filepath.Join(profiles, name))+`: .+`, stderr)
	}
	assert.Equal(t, 5, strings.Count(stderr, "\n"), stderr)

	code, stdout, stderr = otelprof(t, "ls", "--strict", profiles)
	assert.Equal(t, exitWrong, code)
	assert.Empty(t, stdout, "--strict stops")
	assert.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
}

func TestManyFiles_V1(t *testing.T) {
	dir := t.TempDir()
	files := profiletest.Rounds(t, 1000, 10_000)
	data := profiletest.Gzip(t, profiletest.Pprof(t, cpuPprof(1e9)))
	for i := range files {
		name := filepath.Join(dir, fmt.Sprintf("%02d", i%50), fmt.Sprintf("%d.pb.gz", i))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, data, 0o600))
	}
	found := rows(t, dir)
	require.Equal(t, "cpu", found[0].SampleType)
	assert.Equal(t, int64(files)*1e9, found[0].Sum)
	profiletest.Injected(t, fmt.Sprintf("%d files", files))
}

func TestTableTellsPeriodTypesApart(t *testing.T) {
	row := func(service, period string) *rated {
		return &rated{Row: query.Row{Kind: query.Kind{Service: service, Type: "cpu", SampleType: "cpu", Unit: "nanoseconds", PeriodType: period}}}
	}
	var sampleTypes []string
	for _, line := range tableOf([]*rated{row("cart", "cpu"), row("checkout", ""), row("checkout", "cpu")})[1:] {
		sampleTypes = append(sampleTypes, line[2])
	}
	assert.Equal(t, []string{"cpu", "cpu per -", "cpu per cpu"}, sampleTypes)
}

func TestStatsCountsBytesAndRequests(t *testing.T) {
	dir := written(t, []pprofile.Profiles{payloadtest.With(payloadtest.Interval(1_700_000_000_000_000_000, 1e9, 1), "service.name", "cart")})
	code, _, notes := otelprof(t, "ls", "--stats", "--service", "cart", dir)
	require.Equal(t, exitOK, code)
	assert.Regexp(t, `^otelprof: Read [1-9][0-9]+ bytes, with 0 requests to object stores\n$`, notes)
	s := s3test.New(t)
	s.PutDirectory(t, dir, "p")
	code, _, remote := otelprof(t, "ls", "--stats", "--service", "cart", s.Path("p"))
	require.Equal(t, exitOK, code)
	assert.Regexp(t, `^otelprof: Read [1-9][0-9]+ bytes, with [3-9] requests to object stores\n$`, remote, "listings and an index")
	code, _, notes = otelprof(t, "ls", "s3://"+s3test.Bucket+"/p?endpoint=http://localhost:1")
	assert.Equal(t, exitWrong, code)
	assert.Contains(t, notes, "list s3://profiles/p/: dial tcp")
}

func TestVersionIsThatOfTheBuild(t *testing.T) {
	assert.Regexp(t, `^otelprof version \S+ go1\.`, succeed(t, "--version"))
	version = "v1.2.3"
	defer func() { version = "" }()
	assert.Regexp(t, `^otelprof version v1\.2\.3 go1\.`, succeed(t, "--version"))
}

func TestCompletionKnowsTheFormats(t *testing.T) {
	assert.Contains(t, succeed(t, "__complete", "convert", "--format", ""), "folded")
	assert.Contains(t, succeed(t, "completion", "bash"), "otelprof")
}

func TestSumsAreInTheUnitThatAPersonTakes(t *testing.T) {
	for want, of := range map[string]struct {
		sum  int64
		unit string
	}{
		"8.98 s": {8_980_000, "microseconds"}, "8.98 s ": {8_980, "ms"}, "1.5 min": {90e9, "nanoseconds"}, "2.5 h": {9000, "seconds"},
		"-250 µs": {-250_000, "ns"}, "2.5 h ": {150, "minutes"}, "292471 h": {math.MaxInt64 / 8_760, "microseconds"},
		"1.5 KiB": {1536, "bytes"}, "8 EiB": {math.MaxInt64, "By"}, "0 B": {0, "bytes"}, "0 ns": {0, "nanoseconds"},
		"12345678": {12_345_678, "count"}, "12345678 objects": {12_345_678, "objects"},
	} {
		assert.Equal(t, strings.TrimSpace(want), quantity(of.sum, of.unit), of)
	}
	path := profiletest.WriteFile(t, "cpu.pb", profiletest.Pprof(t, &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "microseconds"}}, Sample: []*profile.Sample{{Value: []int64{8_980_000}}}, TimeNanos: 1e18,
	}))
	assert.Contains(t, succeed(t, "ls", path), "  8.98 s  ")
	assert.EqualValues(t, 8_980_000, rows(t, path)[0].Sum)
}
