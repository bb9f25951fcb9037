// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
			assert.Equal(t, withoutHeader(goToolTop(t, source)), withoutHeader(succeed(t, append([]string{"top"}, selection...)...)), "top")
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

// goToolTop is the output of go tool pprof -top.
func goToolTop(t *testing.T, path string) string {
	t.Helper()
	program, err := pprofProgram()
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), strings.TrimSpace(string(program)), "-symbolize=none", "-top", path).Output()
	require.NoError(t, err)
	return string(out)
}

// header are the first lines that may differ: profiles without a time got one, and a first
// mapping without a sample is not there. The rate is ours.
var header = regexp.MustCompile(`(?m)^(File|Build ID|Time|Doc|Rate|Living): .*\n`)

func withoutHeader(top string) string { return header.ReplaceAllString(top, "") }
