// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
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
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// TestCorpusRoundTrip reads back each corpus file that went through translator and exporter.
func TestCorpusRoundTrip(t *testing.T) {
	full, _ := profiletest.Soak(t)
	for _, file := range profiletest.Corpus(t) {
		if !full && len(file.Data) > 128<<10 { // 15 s
			continue
		}
		t.Run(file.Name, func(t *testing.T) {
			original := parse(t, file.Data)
			pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(file.Data)
			require.NoError(t, err)
			for p := range sampletypes.ProfilesOf(payloadtest.With(pd, "service.name", file.Name)) {
				if p.Time() == 0 { // the receiver sets it
					p.SetTime(1_700_000_000_000_000_000)
				}
			}
			dir := written(t, []pprofile.Profiles{pd})
			checked := succeed(t, "check", dir)
			assert.Contains(t, checked, "0 violations")
			for line := range strings.SplitSeq(checked, "\n") { // the files have no build IDs, and units of pprof
				if _, warning, found := strings.Cut(line, "warning: "); found {
					assert.Regexp(t, "^(build id|units): ", warning)
				}
			}
			selection := []string{"--service", file.Name, dir}
			assert.Equal(t, profiletest.Sums(original), listed(t, selection...), "ls")

			converted := filepath.Join(t.TempDir(), "converted.pb.gz")
			succeed(t, append([]string{"convert", "--format", "pprof", "-o", converted}, selection...)...)
			data, err := os.ReadFile(converted)
			require.NoError(t, err)
			assert.Empty(t, difference(original, parse(t, data)), "convert --format pprof")

			base := append([]string{"--base", dir, "--base-from", "1970-01-01T00:00:00Z"}, selection...)
			for i, sampleType := range original.SampleType {
				convert := []string{"convert", "--format", "folded", "--type", typeOf(sampleType.Type)}
				require.Equal(t, folded(original, i), succeed(t, append(convert, selection...)...), sampleType.Type)
				assert.Empty(t, succeed(t, append(convert, base...)...), "a window minus itself")
			}

			source := profiletest.WriteFile(t, "original.pb.gz", file.Data)
			assertSameTop(t, goToolTop(t, source), succeed(t, append([]string{"top", "-n=1000000"}, selection...)...))
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

// folded sums the samples of a sample type of p by their frames.
func folded(p *profile.Profile, sampleType int) string {
	sums := map[string]int64{}
	for _, sample := range p.Sample {
		sums[cmp.Or(strings.Join(profiletest.StackOf(sample), ";"), "[unknown]")] += sample.Value[sampleType]
	}
	var text strings.Builder
	for _, stack := range slices.Sorted(maps.Keys(sums)) {
		if sums[stack] != 0 {
			fmt.Fprintf(&text, "%s %d\n", stack, sums[stack])
		}
	}
	return text.String()
}

// pprofProgram returns the path of go tool pprof.
var pprofProgram = sync.OnceValues(func() ([]byte, error) { return exec.Command("go", "tool", "-n", "pprof").Output() })

// goToolTop is the output of go tool pprof -top, with all functions.
func goToolTop(t *testing.T, path string) string {
	t.Helper()
	program, err := pprofProgram()
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), strings.TrimSpace(string(program)), "-symbolize=none", "-nodefraction=0", "-top", path).Output()
	require.NoError(t, err)
	return string(out)
}

// topRow is a function in the output of otelprof top or go tool pprof -top.
type topRow struct {
	flat, cum         float64 // in the smallest unit
	unit              float64 // of both, of which go tool pprof writes hundredths
	flatPart, cumPart string  // in percent
}

// topLine has flat, its unit, flat %, sum %, cum, its unit, cum % and the function.
var topLine = regexp.MustCompile(`(?m)^ *(-?[\d.]+) ?([A-Za-zµ]*) +(-?[\d.]+) ?% +-?[\d.]+ ?% +(-?[\d.]+) ?([A-Za-zµ]*) +(-?[\d.]+) ?%  +(.*)$`)

// names has what only one of the programs writes in the names of functions.
var names = strings.NewReplacer(" (inline)", "", " (partial-inline)", "", "\t", `\t`)

func topRows(output string) map[string]topRow {
	sizes := map[string]float64{
		"": 1, "ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "mins": 60e9, "h": 3600e9, "hrs": 3600e9,
		"B": 1, "kB": 1 << 10, "KiB": 1 << 10, "MB": 1 << 20, "MiB": 1 << 20, "GB": 1 << 30, "GiB": 1 << 30, "k": 1e3, "M": 1e6,
	}
	rows := map[string]topRow{}
	for _, found := range topLine.FindAllStringSubmatch(output, -1) {
		number := func(i int) float64 {
			v, _ := strconv.ParseFloat(found[i], 64)
			return v
		}
		rows[names.Replace(found[7])] = topRow{number(1) * sizes[found[2]], number(4) * sizes[found[5]], max(sizes[found[2]], sizes[found[5]]), found[3], found[6]}
	}
	return rows
}

// assertSameTop compares the functions and their values, which both programs round.
func assertSameTop(t *testing.T, want, got string) {
	t.Helper()
	wanted, rows := topRows(want), topRows(got)
	require.NotEmpty(t, wanted, want)
	for name, row := range wanted {
		found, ok := rows[name]
		if !assert.True(t, ok, name) {
			continue
		}
		assert.InDelta(t, row.flat, found.flat, 0.01*(math.Abs(row.flat)+row.unit), name)
		assert.InDelta(t, row.cum, found.cum, 0.01*(math.Abs(row.cum)+row.unit), name)
	}
	for name, row := range rows {
		_, found := wanted[name]
		assert.True(t, found || math.Abs(row.cum) < 1<<10, "%s: go tool pprof leaves out only what is next to nothing", name)
	}
}
