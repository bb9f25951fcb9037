// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// goCommand runs the go command. Without it, the test is skipped.
func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("the go command is needed: %v", err)
	}
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	require.NoError(t, command.Run(), &output)
	return output.String()
}

func savePprof(t testing.TB, p *profile.Profile) string {
	t.Helper()
	return savePprofAs(t, filepath.Join(t.TempDir(), "cpu.pb.gz"), p)
}

// withStartLines gives start lines to functions, as those of Go have.
func withStartLines(p *profile.Profile) *profile.Profile {
	for _, f := range p.Function {
		f.StartLine = int64(f.ID % 100)
	}
	for _, l := range p.Location {
		for i := range l.Line {
			if l.Line[i].Line == 0 {
				l.Line[i].Line = l.Line[i].Function.StartLine + int64(l.ID%50)
			}
		}
	}
	return p
}

// recursive has a function that calls itself on one line, from several addresses and inlined, and stacks of one frame and of
// none.
func recursive() *profile.Profile {
	f := &profile.Function{ID: 1, Name: "main.walk", StartLine: 10}
	g := &profile.Function{ID: 2, Name: "main.leaf", StartLine: 20}
	twice := &profile.Location{ID: 1, Address: 1, Line: []profile.Line{{Function: f, Line: 12}, {Function: f, Line: 12}}}
	again := &profile.Location{ID: 2, Address: 2, Line: []profile.Line{{Function: f, Line: 12}}}
	leaf := &profile.Location{ID: 3, Address: 3, Line: []profile.Line{{Function: g, Line: 20}, {Function: g, Line: 20}, {Function: f, Line: 10}}}
	unknown := &profile.Location{ID: 4, Address: 4}
	return &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 1e7, DurationNanos: 1e9, TimeNanos: 1e18,
		Function: []*profile.Function{f, g}, Location: []*profile.Location{twice, again, leaf, unknown},
		Sample: []*profile.Sample{
			{Value: []int64{3, 3e7}, Location: []*profile.Location{leaf, twice, again}},
			{Value: []int64{5, 5e7}, Location: []*profile.Location{twice, again}},
			{Value: []int64{7, 7e7}, Location: []*profile.Location{again, twice, again}},
			{Value: []int64{11, 11e7}, Location: []*profile.Location{again}},
			{Value: []int64{13, 13e7}},
			{Value: []int64{17, 17e7}, Location: []*profile.Location{unknown, again}},
			{Value: []int64{0, 0}, Location: []*profile.Location{leaf, again}},
		},
	}
}

// TestPGOKeepsAllCallsOfTheCompiler: preprofile, the first step of go build -pgo, makes the same of the full and of the reduced
// profile, so that the compiler decides the same.
func TestPGOKeepsAllCallsOfTheCompiler(t *testing.T) {
	profiles := map[string]string{"recursive": savePprof(t, recursive())}
	goroot := strings.TrimSpace(goCommand(t, "env", "GOROOT")) // has the profiles of the compiler's tests
	found, err := filepath.Glob(filepath.Join(goroot, "src/cmd/compile/internal/test/testdata/pgo/*/*.pprof"))
	require.NoError(t, err)
	for _, path := range found {
		profiles[filepath.Base(path)] = path
	}
	t.Run("corpus", func(sub *testing.T) {
		for _, file := range profiletest.Corpus(sub) {
			if p := parse(t, file.Data); strings.Contains(file.Name, "cpu") && len(p.Function) > 0 {
				profiles[file.Name] = savePprof(t, withStartLines(p))
			}
		}
	})
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		full, small := profiles[name], filepath.Join(t.TempDir(), "default.pgo")
		succeed(t, "pgo", "-o", small, full)
		want := goCommand(t, "tool", "preprofile", "-i", full)
		require.Greater(t, strings.Count(want, "\n"), 1, name)
		assert.Equal(t, want, goCommand(t, "tool", "preprofile", "-i", small), name)
	}
}

func TestPGOMergesAndDropsWhatTheCompilerDoesNotUse(t *testing.T) {
	labeled := recursive()
	labeled.SetLabel("pod", []string{"a"})
	labeled.Mapping = []*profile.Mapping{{ID: 1, File: "/bin/main"}}
	later := recursive() // another build, with a comment before each function
	later.Scale(2)
	for _, f := range later.Function {
		f.StartLine += 5
	}
	for _, l := range later.Location {
		for i := range l.Line {
			l.Line[i].Line += 5
		}
	}
	p := parse(t, []byte(succeed(t, "pgo", savePprof(t, labeled), savePprof(t, later))))
	assert.Empty(t, p.Mapping)
	got := map[string]int64{}
	for _, s := range p.Sample {
		assert.Empty(t, s.Label)
		caller, callee := s.Location[1].Line[0], s.Location[0].Line[0].Function
		got[caller.Function.Name+" "+callee.Name] += s.Value[0]
		if caller.Function.Name == "main.walk" && callee.Name == "main.leaf" {
			assert.Equal(t, int64(0), caller.Line-caller.Function.StartLine)
		}
	}
	assert.Equal(t, map[string]int64{"main.walk main.walk": 3 * (3 + 5 + 7), "main.walk main.leaf": 3 * 3, "main.walk ": 3 * 17}, got)
}

func TestPGORejectsWhatTheCompilerCannotUse(t *testing.T) {
	noStart, negative, flat, heap := recursive(), recursive(), recursive(), profiletest.HeapPprof(1, 2, 3, 4096)
	for _, f := range noStart.Function {
		f.StartLine = 0
	}
	negative.Sample[0].Value = []int64{-3, -3e7}
	for _, s := range flat.Sample {
		s.Location = s.Location[:min(1, len(s.Location))]
	}
	flat.Location[0].Line, flat.Location[2].Line = flat.Location[0].Line[:1], flat.Location[2].Line[:1]
	heap.TimeNanos = 1e18
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{savePprof(t, noStart)}, exitWrong, "no function has a start line: must be CPU profiles that a program built by Go 1.20 or later takes of itself"},
		{[]string{savePprof(t, negative)}, exitWrong, "a sample has the value -3: must not be negative, as in a difference of profiles"},
		{[]string{savePprof(t, flat)}, exitWrong, "the profiles have no calls: must have CPU samples with stacks"},
		{[]string{savePprof(t, heap)}, exitWrong, "no profiles match the selection"},
		{[]string{"--type", "inuse_space", savePprof(t, heap)}, exitWrong, "sample types are inuse_space/bytes: must include samples/count or cpu/nanoseconds"},
		{nil, exitUsage, "no PATH"},
	} {
		code, _, stderr := otelprof(t, append([]string{"pgo"}, test.args...)...)
		assert.Equal(t, test.code, code, test.says)
		assert.Contains(t, stderr, test.says)
	}
	partly := recursive()
	partly.Function[1].StartLine = 0
	_, _, stderr := otelprof(t, "pgo", "-o", filepath.Join(t.TempDir(), "x"), savePprof(t, partly))
	assert.NotContains(t, stderr, "start line", "main.leaf calls nothing")
	partly.Sample[2].Location[0] = partly.Location[2]
	partly.Location[2].Line[1].Line = 21
	_, _, stderr = otelprof(t, "pgo", "-o", filepath.Join(t.TempDir(), "x"), savePprof(t, partly))
	assert.Contains(t, stderr, "% of the calls are of functions without a start line, which the compiler ignores")
}
