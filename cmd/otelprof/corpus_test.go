// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

// TestCorpusRoundTrip reads back each corpus file that went through translator, processor and exporter.
func TestCorpusRoundTrip(t *testing.T) {
	files, payloads := pushed(t)
	full, _ := profiletest.Soak(t)
	for i, file := range files {
		if !full && len(file.Data) > 128<<10 { // 15 s
			continue
		}
		t.Run(file.Name, func(t *testing.T) {
			original := parse(t, file.Data)
			dir := written(t, "format: proto", windowed(t, "window: 1h", payloads[i:i+1]))
			assert.Contains(t, succeed(t, "check", dir), "0 violations, 0 warnings")
			selection := []string{"--service", file.Name, dir}
			assert.Equal(t, profiletest.Sums(original), listed(t, selection...), "ls")

			converted := filepath.Join(t.TempDir(), "converted.pb.gz")
			succeed(t, append([]string{"convert", "--format", "pprof", "-o", converted}, selection...)...)
			data, err := os.ReadFile(converted)
			require.NoError(t, err)
			assert.Empty(t, difference(original, parse(t, data)), "convert --format pprof")

			source := profiletest.WriteFile(t, "original.pb.gz", file.Data)
			raw := goTool(t, "-raw", source)
			for i, sampleType := range original.SampleType {
				folded := succeed(t, append([]string{"convert", "--format", "folded", "--type", typeOf(sampleType.Type)}, selection...)...)
				require.Equal(t, foldedOfRaw(raw, i), folded, "convert --format folded --type %s", sampleType.Type)
			}

			assert.Equal(t, withoutHeader(goTool(t, "-top", source)), withoutHeader(succeed(t, append([]string{"top"}, selection...)...)), "top")

			base := append([]string{"--base", dir, "--base-from", "1970-01-01T00:00:00Z"}, selection...)
			for _, sampleType := range original.SampleType {
				empty := succeed(t, append([]string{"convert", "--format", "folded", "--type", typeOf(sampleType.Type)}, base...)...)
				assert.Empty(t, empty, "a window minus itself")
			}
		})
	}
}

// typeOf is the value of --type that selects a sample type alone: a CPU profile also has the sample
// type samples.
func typeOf(sampleType string) string {
	if sampleType == "cpu" || sampleType == "wall" {
		return sampleType + ":" + sampleType
	}
	return sampleType
}

// listed are the sums that ls prints.
func listed(t *testing.T, args ...string) map[string]int64 {
	t.Helper()
	sums := map[string]int64{}
	for _, row := range rows(t, args...) {
		sums[row.SampleType+"/"+row.Unit] += row.Sum
		assert.Positive(t, row.Profiles)
		assert.NotZero(t, row.Start)
	}
	maps.DeleteFunc(sums, func(_ string, v int64) bool { return v == 0 })
	return sums
}

// rows are those that ls --json prints.
func rows(t *testing.T, args ...string) []query.Row {
	t.Helper()
	return rowsIn(t, succeed(t, append([]string{"ls", "--json"}, args...)...))
}

func rowsIn(t *testing.T, lines string) (rows []query.Row) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var row query.Row
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		rows = append(rows, row)
	}
	return rows
}

// difference compares two pprofs sample by sample: what is not there is 0, equal identities are summed.
func difference(want, got *profile.Profile) string {
	options := expand.AsPprof
	options.IgnoreTime, options.IgnoreZeroSamples = want.TimeNanos == 0, true
	return expand.Diff(expand.Normalize(expand.Pprof(want), options), expand.Normalize(expand.Pprof(got), options))
}

func foldedText(sums map[string]int64) string {
	var folded strings.Builder
	for _, stack := range slices.Sorted(maps.Keys(sums)) {
		if sums[stack] != 0 {
			fmt.Fprintf(&folded, "%s %d\n", stack, sums[stack])
		}
	}
	return folded.String()
}

// Lines of go tool pprof -raw: a sample, a location with its first line, and a line inlined there.
var (
	rawSample   = regexp.MustCompile(`^ *(-?\d+(?: +-?\d+)*): ((?:\d+ )*)$`)
	rawLocation = regexp.MustCompile(`^ *(\d+): (0x[0-9a-f]+) (?:M=(\d+) )?(?:\[F\] )?(.*)$`)
	rawLine     = regexp.MustCompile(`^ *(.*) \S*:\d+:\d+ s=\d+(?:\(.*\))?$`)
	rawMapping  = regexp.MustCompile(`^(\d+): 0x[0-9a-f]+/0x[0-9a-f]+/0x[0-9a-f]+ (\S*)`)
)

// foldedOfRaw sums the samples that go tool pprof -raw prints by their frames.
func foldedOfRaw(raw string, sampleType int) string {
	_, raw, _ = strings.Cut(raw, "Samples:\n")
	samples, raw, _ := strings.Cut(raw, "Locations\n")
	locations, mappings, _ := strings.Cut(raw, "Mappings\n")
	files := map[string]string{}
	for line := range strings.Lines(mappings) {
		if found := rawMapping.FindStringSubmatch(line); found != nil {
			files[found[1]] = found[2]
		}
	}
	frames, id := map[string][]string{}, "" // by location, the leaf first
	for line := range strings.Lines(locations) {
		text := strings.TrimSuffix(line, "\n")
		if found := rawLocation.FindStringSubmatch(text); found != nil {
			id, text = found[1], found[4]
			if file := files[found[3]]; text == "" && file != "" {
				frames[id] = []string{fmt.Sprintf("[%s] %s", filepath.Base(file), found[2])}
			} else if text == "" {
				frames[id] = []string{strings.Replace(found[2], "0x0", "[unknown]", 1)}
			}
		}
		if found := rawLine.FindStringSubmatch(text); found != nil {
			frames[id] = append(frames[id], cmp.Or(found[1], "[unknown]"))
		}
	}
	sums := map[string]int64{}
	for line := range strings.Lines(samples) {
		found := rawSample.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if found == nil {
			continue // labels, and the line with the types
		}
		var stack []string
		for id := range strings.FieldsSeq(found[2]) {
			stack = append(stack, frames[id]...)
		}
		if len(stack) == 0 {
			stack = []string{"[unknown]"}
		}
		slices.Reverse(stack)
		value, _ := strconv.ParseInt(strings.Fields(found[1])[sampleType], 10, 64)
		sums[strings.Join(stack, ";")] += value
	}
	return foldedText(sums)
}

// pprofProgram returns the path of go tool pprof.
var pprofProgram = sync.OnceValues(func() ([]byte, error) { return exec.Command("go", "tool", "-n", "pprof").Output() })

// goTool is the output of go tool pprof.
func goTool(t *testing.T, format, path string) string {
	t.Helper()
	program, err := pprofProgram()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), strings.TrimSpace(string(program)), "-symbolize=none", format, path)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, stderr.String())
	return string(out)
}

// header are the first lines that may differ: profiles without a time got one, and a first
// mapping without a sample is not there.
var header = regexp.MustCompile(`(?m)^(File|Build ID|Time|Doc): .*\n`)

func withoutHeader(top string) string { return header.ReplaceAllString(top, "") }

// TestPayloadsOfTheEBPFProfiler reads the payloads of the corpus that this project did not write.
func TestPayloadsOfTheEBPFProfiler(t *testing.T) {
	payloads := profiletest.CorpusOTLP(t)
	path := filepath.Join(t.TempDir(), "ebpf.json")
	var lines bytes.Buffer
	for _, pd := range payloads {
		line := profiletest.JSON(t, pd)
		lines.Write(append(line, '\n'))
	}
	require.NoError(t, os.WriteFile(path, lines.Bytes(), 0o600))
	assert.Contains(t, succeed(t, "check", path), fmt.Sprintf("Checked %s in 1 file against", plural(len(payloads), "record")))
	samples := 0
	for _, pd := range payloads {
		samples += pd.SampleCount()
	}
	assert.GreaterOrEqual(t, listed(t, path)["samples/count"], int64(samples))
	var want []expand.Profile
	for _, pd := range payloads {
		one := profiletest.Expand(t, pd)
		want = append(want, one...)
	}
	got, err := expand.Bytes([]byte(succeed(t, "convert", "--format", "otlp", path)))
	require.NoError(t, err)
	options := expand.Options{Merge: true, IgnoreProfileID: true}
	assert.Empty(t, expand.Diff(expand.Normalize(want, options), expand.Normalize(got, options)))
}
