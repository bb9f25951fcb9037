// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/cmd/otelprof/internal/regression"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// cpuRun is a run of a program whose functions have these numbers of samples. All are called by main.main.
func cpuRun(samples map[string]int64) *profile.Profile {
	main := &profile.Function{ID: 1, Name: "main.main"}
	caller := &profile.Location{ID: 1, Line: []profile.Line{{Function: main, Line: 1}}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 1e7, DurationNanos: 1e9, TimeNanos: 1e18,
		Function: []*profile.Function{main}, Location: []*profile.Location{caller},
	}
	for _, name := range slices.Sorted(maps.Keys(samples)) {
		f := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
		l := &profile.Location{ID: uint64(len(p.Location) + 1), Line: []profile.Line{{Function: f, Line: 2}}}
		p.Function, p.Location = append(p.Function, f), append(p.Location, l)
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{l, caller}, Value: []int64{samples[name], samples[name] * 1e7}})
	}
	return p
}

// runsDirectory is a directory with ten runs of about 3,000 samples, encode of which have the share.
func runsDirectory(t testing.TB, seed uint64, share float64) string {
	t.Helper()
	rng, dir := rand.New(rand.NewPCG(seed, 1)), t.TempDir()
	for i := range 10 {
		encode := int64(3000*share + 20*rng.NormFloat64())
		savePprofAs(t, filepath.Join(dir, fmt.Sprint("cpu", i, ".pb.gz")), cpuRun(map[string]int64{"main.encode": encode, "main.a|b`c": 1000, "main.rest": 2000 - encode}))
	}
	return dir
}

func savePprofAs(t testing.TB, path string, p *profile.Profile) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, profiletest.Gzip(t, profiletest.Pprof(t, p)), 0o600))
	return path
}

func TestDiffFailsIfARateGrewBeyondNoise(t *testing.T) {
	base, equal, slow := runsDirectory(t, 1, 0.3), runsDirectory(t, 2, 0.3), runsDirectory(t, 3, 0.34)
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{base, equal}, exitOK, "4 functions with 1 % of cpu or more compared, 0 changed beyond noise.\nBASE: 10 runs with 5 min, 30.0 cores a process, profiled 100 % of 1 s.\nNEW: "},
		{[]string{"--fail-above", "0%", base, equal}, exitOK, "Pass: the rate of 0 functions grew by more than 0 % of all of BASE.\n"},
		{[]string{base, slow}, exitOK, "2 changed beyond noise"},
		{[]string{"--fail-above", "2%", base, slow}, exitWrong, "Fail: the rate of 1 function grew by more than 2 % of all of BASE.\n"},
		{[]string{"--fail-above", "5%", base, slow}, exitOK, "Pass: the rate of 0 functions grew by more than 5 % of all of BASE.\n"},
		{[]string{"--fail-above", "2%", slow, base}, exitWrong, "main.rest"},
		{[]string{"--fail-above", "2%", "--min-share", "40%", base, slow}, exitOK, "1 function with 40 % of cpu"},
		{[]string{"--fail-above", "2%", "--type", "samples", base, slow}, exitWrong, "BASE: 10 runs with 30000, 3k/s a process, "},
	} {
		code, stdout, stderr := otelprof(t, append([]string{"diff"}, test.args...)...)
		assert.Equal(t, test.code, code, "%s: %s%s", test.args, stdout, stderr)
		assert.Contains(t, stdout, test.says)
		assert.Empty(t, stderr)
	}
}

func TestDiffReports(t *testing.T) {
	base, slow := runsDirectory(t, 1, 0.3), runsDirectory(t, 3, 0.34)
	_, stdout, _ := otelprof(t, "diff", "--fail-above", "2%", base, slow)
	assert.Equal(t, `Fail: the rate of 1 function grew by more than 2 % of all of BASE.
4 functions with 1 % of cpu or more compared, 2 changed beyond noise.
BASE: 10 runs with 5 min, 30.0 cores a process, profiled 100 % of 1 s.
NEW: 10 runs with 5 min, 30.0 cores a process, profiled 100 % of 1 s.
Changes are cumulative, with their 95 % confidence intervals.

CHANGE       OF BASE           BASE        NEW         BASE FLAT   NEW FLAT    P      FUNCTION
+1.22 cores  +4.07 ± 0.98 % !  8.99 cores  10.2 cores  8.99 cores  10.2 cores  6e-08  main.encode
−1.22 cores  −4.07 ± 1.02 %    11.0 cores  9.79 cores  11.0 cores  9.79 cores  7e-08  main.rest
`, stdout)
	_, stdout, _ = otelprof(t, "diff", "--fail-above", "2%", "--format", "markdown", base, slow)
	assert.Contains(t, stdout, `**Fail**: the rate of 1 function grew by more than 2 % of all of BASE.`)
	assert.Contains(t, stdout, "\n\n| CHANGE | OF BASE | BASE | NEW | BASE FLAT | NEW FLAT | P | FUNCTION |\n|--:|--:|--:|--:|--:|--:|--:|:--|\n| +1.22 cores | **+4.07 ± 0.98 %** |")
	assert.Equal(t, "`main.a\\|b'c`", (&report{Base: &regression.Side{Total: 1, Seconds: 1}}).row(&reportedChange{Change: regression.Change{Function: "main.a|b`c"}}, true)[7])

	control := savePprof(t, cpuRun(map[string]int64{"\x1b[2J\n": 1e6}))
	for _, format := range reportFormats {
		_, stdout, _ = otelprof(t, "diff", "--format", format, control, savePprof(t, cpuRun(map[string]int64{"b": 1e6})))
		assert.NotContains(t, stdout, "\x1b")
		assert.Contains(t, stdout, "[2J")
	}

	_, stdout, _ = otelprof(t, "diff", "--fail-above", "2%", "--format", "json", base, slow)
	var got report
	decoder := json.NewDecoder(strings.NewReader(stdout))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&got))
	assert.True(t, got.Failed)
	assert.Equal(t, &regression.Side{Runs: 10, Samples: 30000, Total: 3e11, Seconds: 10}, got.Base)
	assert.Equal(t, []any{"cpu", "nanoseconds", 0.01, 0.02}, []any{got.SampleType, got.Unit, got.MinShare, *got.FailAbove})
	require.Len(t, got.Functions, 4)
	assert.Equal(t, "main.encode", got.Functions[0].Function)
	assert.True(t, got.Functions[0].Fails && got.Functions[0].Significant)
	assert.False(t, got.Functions[1].Fails)
	assert.Equal(t, query.Rates, got.Basis)
	assert.InDelta(t, 0.0407, got.Functions[0].Part, 1e-4)
	for _, field := range []string{`"sample_type"`, `"unit"`, `"basis"`, `"seconds"`, `"part"`, `"base"`, `"new"`, `"runs"`, `"samples"`, `"total"`, `"min_share"`, `"fail_above"`, `"false_discovery_rate"`,
		`"functions"`, `"function"`, `"cumulative"`, `"flat"`, `"change"`, `"margin"`, `"p"`, `"significant"`, `"fails"`, `"failed"`} {
		assert.Contains(t, stdout, field+":")
	}
}

// TestDiffValuesAreThoseOfTop: recursive and inlined functions count once in a stack, and lines do not matter.
func TestDiffValuesAreThoseOfTop(t *testing.T) {
	path := savePprof(t, recursive())
	moved := recursive()
	for _, l := range moved.Location {
		for i := range l.Line {
			l.Line[i].Line += 100
		}
	}
	code, stdout, stderr := otelprof(t, "diff", "--format", "json", "--min-share", "0%", path, savePprof(t, moved))
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stderr, "1 run on a side: only large changes are significant")
	var got report
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	shares := map[string]string{}
	for _, c := range got.Functions {
		assert.Zero(t, c.Difference)
		shares[c.Function] = fmt.Sprintf("%.2f%% %.2f%%", c.Base.Flat/got.Base.Rate()*100, c.Base.Cumulative/got.Base.Rate()*100)
	}
	for name, row := range topRows(succeed(t, "top", path)) {
		if strings.HasPrefix(name, "main.") {
			assert.Equal(t, row.flatPart+"% "+row.cumPart+"%", shares[name], name)
			delete(shares, name)
		}
	}
	assert.Len(t, shares, 1, "%v", shares) // without a name
	assert.Contains(t, shares, "<unknown>")
}

// TestDiffComparesRates_T3: the shares of both sides are equal, and the new version takes half as much again for the same work. How long a run is
// profiled does not matter.
func TestDiffComparesRates_T3(t *testing.T) {
	runs := func(seed uint64, cores, seconds float64) string {
		rng, dir := rand.New(rand.NewPCG(seed, 1)), t.TempDir()
		for i := range 8 {
			of := 100 * cores * seconds
			p := cpuRun(map[string]int64{"main.encode": int64(of/2 + math.Sqrt(of/2)*rng.NormFloat64()), "main.rest": int64(of/2 + math.Sqrt(of/2)*rng.NormFloat64())})
			p.DurationNanos, p.TimeNanos = int64(seconds*1e9), 1e18+int64(i)*60e9
			savePprofAs(t, filepath.Join(dir, fmt.Sprint("cpu", i, ".pb.gz")), p)
		}
		return dir
	}
	base, slower, shorter := runs(1, 0.8, 30), runs(2, 1.2, 30), runs(3, 0.8, 10)
	code, stdout, _ := otelprof(t, "diff", "--fail-above", "10%", base, slower)
	assert.Equal(t, exitWrong, code)
	assert.Contains(t, stdout, "Fail: the rate of 3 functions grew by more than 10 % of all of BASE.\n", "main.main, too")
	assert.Regexp(t, `BASE: 8 runs with 3\.\d+ min, 0\.80 cores a process, profiled 53 % of 7 min 30 s\.\nNEW: 8 runs with 4\.\d+ min, 1\.[12]\d cores a process`, stdout)
	assert.Regexp(t, `(?m)^\+0\.(39|40|41) cores +\+\d+\.\d+ ± \d\.\d+ % ! +0\.(79|80|81) cores +1\.(19|20|21) cores +0 cores +0 cores .* main\.main$`, stdout)
	_, stdout, _ = otelprof(t, "diff", base, shorter)
	assert.Contains(t, stdout, " 0 changed beyond noise.")
}

// TestDiffComparesACanary: one pod, which is profiled for three times as long, is slower than each of three stable ones.
func TestDiffComparesACanary(t *testing.T) {
	rng, end := rand.New(rand.NewPCG(5, 6)), time.Now().Truncate(time.Minute)
	var payloads []pprofile.Profiles
	for i := range 10 {
		for pod := range 4 {
			track, seconds, samples := "stable", 10.0, 400.0
			if pod == 3 {
				track, seconds, samples = "canary", 30, 1800
			}
			p := cpuRun(map[string]int64{"main.encode": int64(samples + math.Sqrt(samples)*rng.NormFloat64())})
			pd := typed(t, p, "cpu", time.Since(end)+time.Duration(10-i)*time.Minute)
			payloads = append(payloads, payloadtest.With(pd, "k8s.pod.name", fmt.Sprint(pod), "track", track))
			for p := range sampletypes.ProfilesOf(pd) {
				p.SetDurationNano(uint64(seconds * 1e9))
			}
		}
	}
	dir := written(t, payloads)
	code, stdout, stderr := otelprof(t, "diff", "--type", "cpu:cpu", "--fail-above", "30%", "--label", "track=canary", "--base-label", "track=stable", dir, dir)
	assert.Equal(t, exitWrong, code, stderr)
	assert.Regexp(t, `BASE: 30 runs with .*, 0\.(39|40|41) cores a process, profiled .*\nNEW: 10 runs with .*, 0\.(59|60|61) cores a process`, stdout)
	assert.Regexp(t, `(?m)^\+0\.(19|20|21) cores .* main\.encode$`, stdout)
}

// TestDiffComparesValuesWithoutARate: folded stacks state no duration. A run counts as one, however many there are.
func TestDiffComparesValuesWithoutARate(t *testing.T) {
	folded := func(count, runs int) string {
		dir := t.TempDir()
		for i := range runs {
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), fmt.Appendf(nil, "main;encode %d\nmain;rest 5000\n", count+i), 0o600))
		}
		return dir
	}
	code, stdout, _ := otelprof(t, "diff", "--fail-above", "5%", folded(1000, 6), folded(4000, 3))
	assert.Equal(t, exitWrong, code)
	assert.Contains(t, stdout, "Some profiles state no duration, so there is no rate: values of a run are compared.")
	assert.Regexp(t, `(?m)^\+3k +\+\d+\.\d+ ± .* 1k +4k .* encode$`, stdout)
	assert.NotRegexp(t, `rest$`, stdout)
}

func TestDiffCountsSamplesOfWeightedValues(t *testing.T) {
	heap := profiletest.HeapPprof(4, 2<<20, 3, 1<<20)
	heap.TimeNanos, heap.PeriodType, heap.Period = 1e18, &profile.ValueType{Type: "space", Unit: "bytes"}, 512<<10
	for _, test := range []struct {
		p       *profile.Profile
		typ     string
		samples float64
	}{
		{cpuRun(map[string]int64{"a": 30, "b": 12}), "cpu", 42}, {cpuRun(map[string]int64{"a": 30, "b": 12}), "samples", 42},
		{heap, "alloc_space", 4}, {heap, "alloc_objects", 4}, {heap, "inuse_space", 2}, {heap, "inuse_objects", 2},
	} {
		i := slices.IndexFunc(test.p.SampleType, func(s *profile.ValueType) bool { return s.Type == test.typ })
		require.GreaterOrEqual(t, i, 0, test.typ)
		assert.InDelta(t, test.samples, query.SamplesOf(test.p, i), 1e-9, test.typ)
	}
	unknown := cpuRun(map[string]int64{"a": 30, "b": 12})
	unknown.PeriodType = nil
	unknown.SampleType = []*profile.ValueType{{Type: "contentions", Unit: "count"}, {Type: "delay", Unit: "nanoseconds"}}
	assert.InDelta(t, 42, query.SamplesOf(unknown, 0), 0)
	assert.InDelta(t, 2, query.SamplesOf(unknown, 1), 0, "stacks")
}

// TestDiffTakesTheLastSnapshotOfEachProcess: earlier ones of the process are no runs of their own.
func TestDiffTakesTheLastSnapshotOfEachProcess(t *testing.T) {
	heap := func(pod string, at int64, bytes int64) pprofile.Profiles {
		p := profiletest.HeapPprof(1, 2, 3, bytes)
		p.TimeNanos = at
		pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(profiletest.Pprof(t, p))
		require.NoError(t, err)
		return payloadtest.With(pd, "k8s.pod.name", pod)
	}
	base := written(t, []pprofile.Profiles{heap("a", 2e18, 200), heap("a", 1e18, 100), heap("b", 1e18, 10), heap("b", 2e18, 1000)})
	_, stdout, stderr := otelprof(t, "diff", "--type", "inuse_space", "--format", "json", base, base)
	var got report
	require.NoError(t, json.Unmarshal([]byte(stdout), &got), stderr)
	assert.Equal(t, 2, got.Base.Runs)
	assert.InDelta(t, 1200, got.Base.Total, 0)
	assert.Contains(t, stderr, "Only the last snapshot of each resource counts; earlier ones skipped: 4\n") // two of each side
	dir := t.TempDir()
	for i := range 2 { // without a resource, each is a process
		savePprofAs(t, filepath.Join(dir, strconv.Itoa(i)), profiletest.HeapPprof(1, 2, 3, 100))
	}
	_, stdout, stderr = otelprof(t, "diff", "--type", "inuse_space", "--format", "json", dir, dir)
	require.NoError(t, json.Unmarshal([]byte(stdout), &got), stderr)
	assert.Equal(t, 2, got.Base.Runs)
}

// TestDiffStaysWithinMaxMemory_V2: the functions of a run, and those of the snapshots of many processes.
func TestDiffStaysWithinMaxMemory_V2(t *testing.T) {
	functions := func(n int) *profile.Profile {
		samples := map[string]int64{}
		for i := range n {
			samples[fmt.Sprint("main.function_", i)] = 1
		}
		return cpuRun(samples)
	}
	processes := t.TempDir()
	for i := range 20 {
		p := functions(1000)
		p.SampleType = []*profile.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}}
		p.PeriodType = &profile.ValueType{Type: "space", Unit: "bytes"}
		savePprofAs(t, filepath.Join(processes, strconv.Itoa(i)), p)
	}
	for _, path := range []string{processes, savePprof(t, functions(20_000))} {
		code, _, stderr := otelprof(t, "diff", "--max-memory=16MiB", path, path)
		assert.Equal(t, exitUsage, code)
		assert.Contains(t, stderr, "BASE: the functions take more than 2 MiB of memory, an eighth of --max-memory: select less, by service, type or time")
	}
}

func TestDiffErrors(t *testing.T) {
	base := runsDirectory(t, 1, 0.3)
	negative, zero, wall := cpuRun(map[string]int64{"a": -3}), cpuRun(map[string]int64{"a": 3}), cpuRun(map[string]int64{"a": 3})
	zero.Sample[0].Value = []int64{0, 0}
	wall.SampleType[1].Type, wall.PeriodType.Type = "wall", "wall"
	only := cpuRun(map[string]int64{"a": 3})
	only.SampleType = only.SampleType[:1]
	only.Sample[0].Value = only.Sample[0].Value[:1]
	damaged := runsDirectory(t, 1, 0.3)
	require.NoError(t, os.WriteFile(filepath.Join(damaged, "cpu3.pb.gz"), []byte("x"), 0o600))
	mixed := exampleDirectory(t)
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{base}, "1 PATH: must be BASE and NEW, each a file or directory, or - for standard input\notelprof: run 'otelprof diff --help'"},
		{[]string{base, base, base}, "3 PATHs: must be BASE and NEW"},
		{[]string{"-", "-"}, "standard input can be read only once"},
		{[]string{"--format", "svg", base, base}, `--format is "svg": must be one of text, markdown, json`},
		{[]string{"--fail-above", "5", base, base}, `--fail-above is "5": must be a percentage between 0% and 100%, such as 5%`},
		{[]string{"--fail-above", "NaN%", base, base}, `--fail-above is "NaN%": must be a percentage`},
		{[]string{"--min-share", "101%", base, base}, `--min-share is "101%": must be a percentage`},
		{[]string{base, filepath.Join(base, "none")}, "no such file or directory"},
		{[]string{"--service", "other", base, base}, "BASE: no profiles match the selection"},
		{[]string{base, t.TempDir()}, "no files in "},
		{[]string{base, savePprof(t, negative)}, "NEW: a sample has the value -30000000: must not be negative, as in a difference of profiles"},
		{[]string{savePprof(t, zero), base}, "BASE: all values of cpu are 0"},
		{[]string{base, savePprof(t, wall)}, "NEW: sample types are samples/count, wall/nanoseconds: must include cpu/nanoseconds, as in the profiles before"},
		{[]string{base, savePprof(t, only)}, "NEW: sample types are samples/count: must include cpu/nanoseconds"},
		{[]string{filepath.Join(mixed, "profiles"), base}, "BASE: the selection has several profile types: cpu; heap\notelprof: select one with --type\n"},
		{[]string{damaged, base}, "cpu3.pb.gz: is not a profile"},
	} {
		code, _, stderr := otelprof(t, append([]string{"diff"}, test.args...)...)
		assert.Equal(t, exitUsage, code, "%s: %s", test.args, stderr)
		assert.Contains(t, stderr, test.says, test.args)
	}
}

// TestFalsePositivesOfRealRuns compares runs of this program, each of a test that does a fixed amount of work. OTELPROF_RUNS is how
// many it runs, which takes about a second each. Fewer than 1 % of the comparisons may fail.
func TestFalsePositivesOfRealRuns(t *testing.T) {
	count, err := strconv.Atoi(os.Getenv("OTELPROF_RUNS"))
	if err != nil {
		t.Skip("OTELPROF_RUNS is not set: make false-positives sets it")
	}
	files, dir := make([]string, count), t.TempDir()
	for i := range files {
		files[i] = filepath.Join(dir, strconv.Itoa(i))
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=TestReportsStayWithinMaxMemory_V2", "-test.cpuprofile="+files[i])
		output, err := command.CombinedOutput()
		require.NoError(t, err, string(output))
	}
	rng, start := rand.New(rand.NewPCG(1, 2)), time.Now()
	failed, compared := 0, 0
	for _, runs := range []int{1, 3, 5, 10} {
		const pairs = 200
		found := 0
		for range pairs {
			order := rng.Perm(len(files))
			if 2*runs > len(order) {
				break
			}
			sides := []string{t.TempDir(), t.TempDir()}
			for i, of := range order[:2*runs] {
				require.NoError(t, os.Link(files[of], filepath.Join(sides[i%2], fmt.Sprintf("%d.pb.gz", i))))
			}
			code, stdout, stderr := otelprof(t, "diff", "--fail-above", "0%", sides[0], sides[1])
			require.NotEqual(t, exitUsage, code, stderr)
			compared++
			if code == exitWrong {
				found++
				t.Log(stdout)
			}
		}
		t.Logf("%2d runs a side: %d of %d comparisons of equal sides fail", runs, found, pairs)
		failed += found
	}
	t.Logf("%d of %d comparisons of %d runs fail, %v", failed, compared, len(files), time.Since(start))
	assert.Less(t, float64(failed), 0.01*float64(compared))
}
