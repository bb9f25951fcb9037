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
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

// TestCorpusRoundTrip reads back each corpus file that went through translator, processor and exporter.
func TestCorpusRoundTrip(t *testing.T) {
	files, payloads := pushed(t)
	for i, file := range files {
		t.Run(file.Name, func(t *testing.T) {
			original := parse(t, file.Data)
			dir := written(t, "format: proto", windowed(t, "window: 1h", payloads[i:i+1]))
			assert.Contains(t, succeed(t, "check", dir), "0 violations, 0 warnings")
			selection := []string{"--service", file.Name, dir}
			assert.Equal(t, sumsOf(original), listed(t, selection...), "ls")

			converted := filepath.Join(t.TempDir(), "converted.pb.gz")
			succeed(t, append([]string{"convert", "--to", "pprof", "-o", converted}, selection...)...)
			data, err := os.ReadFile(converted)
			require.NoError(t, err)
			assert.Empty(t, difference(original, parse(t, data)), "convert --to pprof")

			for i, sampleType := range original.SampleType {
				folded := succeed(t, append([]string{"convert", "--to", "folded", "--type", typeOf(sampleType.Type)}, selection...)...)
				require.Equal(t, foldedOf(original, i), folded, "convert --to folded --type %s", sampleType.Type)
			}

			source := filepath.Join(t.TempDir(), "original.pb.gz")
			require.NoError(t, os.WriteFile(source, file.Data, 0o600))
			assert.Equal(t, goToolTop(t, source), withoutHeader(succeed(t, append([]string{"top"}, selection...)...)), "top")

			base := append([]string{"--base", dir, "--base-from", "1970-01-01T00:00:00Z"}, selection...)
			for _, sampleType := range original.SampleType {
				empty := succeed(t, append([]string{"convert", "--to", "folded", "--type", typeOf(sampleType.Type)}, base...)...)
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

// sumsOf are the sums by sample type that are not 0.
func sumsOf(p *profile.Profile) map[string]int64 {
	sums := map[string]int64{}
	for _, s := range p.Sample {
		for i, v := range s.Value {
			sums[p.SampleType[i].Type] += v
		}
	}
	maps.DeleteFunc(sums, func(_ string, v int64) bool { return v == 0 })
	return sums
}

// listed are the sums that ls prints.
func listed(t *testing.T, args ...string) map[string]int64 {
	t.Helper()
	sums := map[string]int64{}
	for line := range strings.Lines(succeed(t, append([]string{"ls", "--json"}, args...)...)) {
		var row query.Row
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		sums[row.SampleType] += row.Sum
		assert.Positive(t, row.Profiles)
		assert.NotZero(t, row.Start)
	}
	maps.DeleteFunc(sums, func(_ string, v int64) bool { return v == 0 })
	return sums
}

// difference compares two pprofs sample by sample: what is not there is 0, equal identities are summed.
func difference(want, got *profile.Profile) string {
	options := profiletest.AsPprof
	options.IgnoreTime, options.IgnoreZeroSamples = want.TimeNanos == 0, true
	return profiletest.Diff(profiletest.Normalize(profiletest.ExpandPprof(want), options), profiletest.Normalize(profiletest.ExpandPprof(got), options))
}

// foldedOf sums the samples, which go tool pprof -raw prints, by their frames.
func foldedOf(p *profile.Profile, sampleType int) string {
	sums := map[string]int64{}
	for _, s := range p.Sample {
		var frames []string
		for _, l := range s.Location {
			for _, line := range l.Line {
				frames = append(frames, cmp.Or(line.Function.Name, "[unknown]"))
			}
			if len(l.Line) == 0 && l.Mapping != nil && l.Mapping.File != "" {
				frames = append(frames, fmt.Sprintf("[%s] 0x%x", filepath.Base(l.Mapping.File), l.Address))
			} else if len(l.Line) == 0 {
				frames = append(frames, fmt.Sprintf("0x%x", l.Address))
			}
		}
		if len(frames) == 0 || frames[0] == "0x0" {
			frames = append([]string{"[unknown]"}, frames[min(1, len(frames)):]...)
		}
		slices.Reverse(frames)
		sums[strings.Join(frames, ";")] += s.Value[sampleType]
	}
	var folded strings.Builder
	for _, stack := range slices.Sorted(maps.Keys(sums)) {
		if sums[stack] != 0 {
			fmt.Fprintf(&folded, "%s %d\n", stack, sums[stack])
		}
	}
	return folded.String()
}

func goToolTop(t *testing.T, path string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "tool", "pprof", "-symbolize=none", "-top", path)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, stderr.String())
	return withoutHeader(string(out))
}

// header are the first lines that may differ: profiles without a time got one, and a first
// mapping without a sample is not there.
var header = regexp.MustCompile(`(?m)^(File|Build ID|Time|Doc): .*\n`)

func withoutHeader(top string) string { return header.ReplaceAllString(top, "") }

// smallerPushed leaves out large files, unless all tests run in full.
func smallerPushed(t *testing.T) (files []profiletest.File, payloads []pprofile.Profiles) {
	t.Helper()
	full, _ := profiletest.Soak(t)
	allFiles, allPayloads := pushed(t)
	for i, file := range allFiles {
		if full || len(file.Data) < 32<<10 {
			files, payloads = append(files, file), append(payloads, allPayloads[i])
		}
	}
	return files, payloads
}

// TestEveryModeOfTheExporter reads back the corpus in each format: the same sums, nothing to find.
func TestEveryModeOfTheExporter(t *testing.T) {
	files, payloads := smallerPushed(t)
	want := map[string]int64{}
	for _, file := range files {
		for typ, sum := range sumsOf(parse(t, file.Data)) {
			want[typ] += sum
		}
	}
	window := windowed(t, "window: 1h", payloads)
	reference := expanded(t, written(t, "format: proto", window))
	for _, mode := range []string{
		"format: proto\ncompression: none",
		"format: proto\ncompression: gzip",
		"format: proto\ncompression: zstd\nframing: none",
		"format: proto\ncompression: none\nframing: none",
		"format: json",
		"format: json\ncompression: none",
		"format: json\ncompression: gzip",
		"format: proto\ngroup_by: [service.name]",
	} {
		t.Run(strings.ReplaceAll(mode, "\n", ", "), func(t *testing.T) {
			dir := written(t, mode, window)
			assert.Equal(t, want, listed(t, dir))
			assert.Contains(t, succeed(t, "check", dir), "0 violations, 0 warnings")
			assert.Empty(t, profiletest.Diff(reference, expanded(t, dir)))
		})
	}
	for _, mode := range []string{"format: pprof", "format: pprof\ncompression: zstd", "format: pprof\ncompression: none"} {
		t.Run(strings.ReplaceAll(mode, "\n", ", "), func(t *testing.T) {
			dir := written(t, mode+"\ngroup_by: [service.name]", window)
			assert.Contains(t, succeed(t, "check", dir), "0 violations, 0 warnings")
			sums := map[string]int64{}
			require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
				if err == nil && !entry.IsDir() && !strings.HasSuffix(path, ".index") {
					for typ, sum := range listed(t, path) {
						sums[typ] += sum
					}
				}
				return err
			}))
			assert.Equal(t, want, sums)
		})
	}
}

// expanded is what convert --to otlp makes of a directory.
func expanded(t *testing.T, dir string) []profiletest.Expanded {
	t.Helper()
	message := succeed(t, "convert", "--to", "otlp", dir)
	profiletest.RequireConformsBytes(t, []byte(message))
	all, err := profiletest.ExpandBytes([]byte(message))
	require.NoError(t, err)
	return all
}

// TestCheckFindsNothingInAnyModeOfTheProcessor checks what the processor makes of the corpus.
func TestCheckFindsNothingInAnyModeOfTheProcessor(t *testing.T) {
	_, payloads := smallerPushed(t)
	for _, mode := range []string{
		"window: 0s", "window: 1h\nsnapshots: latest", "window: 1h\nsnapshots: sum", "window: 1h\ntimestamps: drop",
		"window: 1h\ngranularity: function", "window: 1h\nrebase_mappings: true",
		"window: 1h\ndrop_sample_attributes: [bytes, thread]", "window: 1h\ndrop_resource_attributes: [service.name]",
		"window: 1h\nsplit_by: [process.executable.name]",
	} {
		dir := written(t, "compression: none", windowed(t, mode, payloads))
		assert.Contains(t, succeed(t, "check", dir), "0 violations, 0 warnings", mode)
	}
}

// TestPayloadsOfTheEBPFProfiler reads the payloads of the corpus that this project did not write.
func TestPayloadsOfTheEBPFProfiler(t *testing.T) {
	payloads := profiletest.CorpusOTLP(t)
	path := filepath.Join(t.TempDir(), "ebpf.json")
	var lines bytes.Buffer
	for _, pd := range payloads {
		line, err := (&pprofile.JSONMarshaler{}).MarshalProfiles(pd)
		require.NoError(t, err)
		lines.Write(append(line, '\n'))
	}
	require.NoError(t, os.WriteFile(path, lines.Bytes(), 0o600))
	assert.Contains(t, succeed(t, "check", path), fmt.Sprintf("Checked %d records in 1 files", len(payloads)))
	samples := 0
	for _, pd := range payloads {
		samples += pd.SampleCount()
	}
	assert.GreaterOrEqual(t, listed(t, path)["samples"], int64(samples))
	var want []profiletest.Expanded
	for _, pd := range payloads {
		one, err := profiletest.Expand(pd)
		require.NoError(t, err)
		want = append(want, one...)
	}
	got, err := profiletest.ExpandBytes([]byte(succeed(t, "convert", "--to", "otlp", path)))
	require.NoError(t, err)
	options := profiletest.Options{Merge: true, IgnoreProfileID: true}
	assert.Empty(t, profiletest.Diff(profiletest.Normalize(want, options), profiletest.Normalize(got, options)))
}
