// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/s3test"
)

// engine runs SQL: a script for Node.js whose package is in bin.
type engine struct{ script, packaged string }

var (
	duckDB     = engine{"duckdb.cjs", "duckdb"}
	clickHouse = engine{"chdb.cjs", "chdb"}
)

// skipWithout skips the test if the engine is not there.
func (e engine) skipWithout(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(filepath.Join("..", "bin", e.packaged)); err != nil {
		if os.Getenv("E2E_REQUIRE") != "" {
			require.NoError(t, err, "make bin/%s", e.packaged)
		}
		t.Skipf("no engine, which make bin/%s installs with npm: %v", e.packaged, err)
	}
}

// row is one of a result, with numbers as float64.
type row map[string]any

// query runs statements in a directory, and returns the rows of each query.
func (e engine) query(t testing.TB, dir string, statements ...string) (results [][]row) {
	t.Helper()
	script, err := filepath.Abs(e.script)
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), "node", script)
	command.Dir, command.Stdin = dir, strings.NewReader(strings.Join(statements, ";\n"))
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.Output()
	require.NoError(t, err, "%s\n%s", strings.Join(statements, ";\n"), &errs)
	require.NoError(t, json.Unmarshal(out, &results), "%s", out)
	for _, rows := range results {
		for _, r := range rows {
			r.parseNumbers()
		}
	}
	return results
}

// parseNumbers makes numbers of those in text, as which DuckDB writes large integers.
func (r row) parseNumbers() {
	for column, value := range r {
		text, isText := value.(string)
		if number, err := strconv.ParseFloat(text, 64); isText && err == nil && column != "span_id" {
			r[column] = number
		}
	}
}

// sqlBlocks are those of a page.
func sqlBlocks(t testing.TB, page string) (blocks []string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(page)))
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?ms)^```sql\n(.*?)^```$").FindAllStringSubmatch(string(content), -1) {
		blocks = append(blocks, strings.TrimSuffix(strings.TrimSpace(block[1]), ";"))
	}
	return blocks
}

// TestQueriesOfTheSQLPage runs the questions of docs/sql.md in DuckDB and in ClickHouse's engine, on a directory and on a bucket, and compares
// the answers with otelprof's.
func TestQueriesOfTheSQLPage(t *testing.T) {
	dir := t.TempDir()
	writeFleet(t, dir, fleet(fleetBegin))
	blocks := sqlBlocks(t, "docs/sql.md")
	require.Len(t, blocks, 3+len(questions))
	for name, of := range map[string]struct {
		engine
		setup string
	}{"DuckDB": {duckDB, blocks[0]}, "ClickHouse": {clickHouse, blocks[1]}} {
		t.Run(name, func(t *testing.T) {
			of.skipWithout(t)
			askAll(t, of.engine, dir, of.setup, dir, blocks[3:])
		})
	}
	bucketSetup := func(endpoint string) string {
		replaced := strings.NewReplacer("https://s3.eu-west-1.amazonaws.com/profiles/", endpoint+"/"+s3test.Bucket+"/", "KEY", "test-access-key", "SECRET", s3test.Secret)
		return replaced.Replace(blocks[2])
	}
	t.Run("ClickHouse on a bucket", func(t *testing.T) {
		clickHouse.skipWithout(t)
		server := s3test.New(t)
		server.PutDirectory(t, dir, "prod")
		askAll(t, clickHouse, t.TempDir(), bucketSetup(server.URL), dir, blocks[3:])
	})
	t.Run("ClickHouse on MinIO", func(t *testing.T) {
		clickHouse.skipWithout(t)
		endpoint, client := s3test.MinIO(t)
		s3test.PutDirectory(t, client, dir, "prod")
		askAll(t, clickHouse, t.TempDir(), bucketSetup(endpoint), dir, blocks[3:])
	})
}

// askAll asks an engine the questions in one process, and compares its answers with those of otelprof about a directory.
func askAll(t *testing.T, of engine, in, setup, dir string, queries []string) {
	t.Helper()
	results := of.query(t, in, append([]string{setup}, queries...)...)
	require.Len(t, results, len(questions))
	for i, question := range questions {
		question.check(t, results[i], dir)
	}
}

// question is one of the page, in the order of the page. check compares the answer with that of otelprof.
type question struct {
	name  string
	check func(t *testing.T, answer []row, dir string)
}

var questions = []question{
	{"top functions by service", func(t *testing.T, answer []row, dir string) {
		got := map[string]map[string]float64{}
		for _, r := range answer {
			service := r["service"].(string)
			if got[service] == nil {
				got[service] = map[string]float64{}
			}
			got[service][r["function"].(string)] = r["seconds"].(float64) * 1e9
		}
		want := map[string]map[string]float64{}
		for _, service := range []string{"checkout", "cart"} {
			want[service] = byFunction(foldedOf(t, "--service", service, "--type", "cpu", dir), leaf)
		}
		assertClose(t, want, got)
	}},
	{"change between two versions", func(t *testing.T, answer []row, dir string) {
		require.NotEmpty(t, answer)
		for side, version := range map[string]string{"base": "1.9", "cores": "2.0"} {
			selection := []string{"--service", "checkout", "--type", "cpu", "--label", "service.version=" + version, dir}
			covered := listed(t, selection...).Covered
			for function, value := range byFunction(foldedOf(t, selection...), leaf) {
				i := slices.IndexFunc(answer, func(r row) bool { return r["function"] == function })
				require.GreaterOrEqual(t, i, 0, function)
				assert.InEpsilon(t, value/1e9/covered, answer[i][side], 1e-9, "%s %s", function, version)
			}
			of := listed(t, selection...)
			total := 0.0
			for _, r := range answer {
				total += r[side].(float64)
			}
			assert.InEpsilon(t, of.PerProcess/1e9, total, 0.01, "the rate of a process of version %s", version)
		}
	}},
	{"samples of a trace", func(t *testing.T, answer []row, dir string) {
		got := map[string]float64{}
		for _, r := range answer {
			assert.Equal(t, []any{"cart", "0100000000000000"}, []any{r["service"], r["span_id"]})
			var stack []string
			for _, function := range slices.Backward(r["stack"].([]any)) {
				stack = append(stack, function.(string))
			}
			got[strings.Join(stack, ";")] += r["milliseconds"].(float64) * 1e6
		}
		assert.Equal(t, foldedOf(t, "--trace-id", fleetTrace.String(), "--type", "cpu", dir), got)
		assert.Len(t, got, 2)
	}},
	{"growth of a heap by process", func(t *testing.T, answer []row, dir string) {
		require.Len(t, answer, 5)
		assert.Equal(t, "pod-1", answer[0]["instance"])
		assert.InEpsilon(t, 58, answer[0]["last"].(float64)-answer[0]["first"].(float64), 1e-9)
		for _, r := range answer {
			of := listed(t, "--type", "inuse_space", "--label", fmt.Sprint("service.instance.id=", r["instance"]), dir)
			assert.InEpsilon(t, of.Sum/(1<<20), r["last"], 1e-9, "%v", r["instance"])
		}
	}},
	{"cost of a function over a fleet", func(t *testing.T, answer []row, dir string) {
		require.Len(t, answer, 2)
		for _, r := range answer {
			selection := []string{"--service", r["service"].(string), "--type", "cpu", dir}
			values := foldedOf(t, selection...)
			total := byFunction(values, func(string) []string { return []string{""} })[""]
			cost := byFunction(values, func(stack string) []string {
				return slices.Compact(slices.Sorted(slices.Values(strings.Split(stack, ";"))))
			})["json.Marshal"]
			assert.InEpsilon(t, cost, r["seconds"].(float64)*1e9, 1e-9)
			assert.InEpsilon(t, cost/total, r["share"], 1e-9)
			assert.InEpsilon(t, listed(t, selection...).Rate/1e9*cost/total, r["cores"], 0.05, "%v", r["service"])
		}
	}},
}

func leaf(stack string) []string { return []string{stack[strings.LastIndexByte(stack, ';')+1:]} }

// byFunction adds the values of stacks to each of the functions that are selected of a stack.
func byFunction(values map[string]float64, functions func(stack string) []string) map[string]float64 {
	sums := map[string]float64{}
	for stack, value := range values {
		for _, function := range functions(stack) {
			sums[function] += value
		}
	}
	return sums
}

func assertClose(t *testing.T, want, got map[string]map[string]float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for service, functions := range want {
		require.Len(t, got[service], len(functions), service)
		for function, value := range functions {
			assert.InEpsilon(t, value, got[service][function], 1e-9, "%s %s", service, function)
		}
	}
}

// listing is a line of otelprof ls.
type listing struct {
	Sum        float64 `json:"sum"`
	Rate       float64 `json:"rate"`
	PerProcess float64 `json:"rate_per_process"`
	Covered    float64 `json:"covered_seconds"`
	Processes  int     `json:"processes"`
}

// listed is the only line of otelprof ls.
func listed(t *testing.T, arguments ...string) (l listing) {
	t.Helper()
	code, out, errs, _ := otelprof(t, append([]string{"ls", "--json"}, arguments...)...)
	require.Zero(t, code, errs)
	require.Equal(t, 1, strings.Count(out, "\n"), out)
	require.NoError(t, json.Unmarshal([]byte(out), &l))
	return l
}

// TestFilesOfConvertAreRead: otelprof convert writes the table of samples.
func TestFilesOfConvertAreRead(t *testing.T) {
	dir := t.TempDir()
	writeFleet(t, dir, fleet(fleetBegin))
	page, err := os.ReadFile(filepath.Join("..", "docs", "sql.md"))
	require.NoError(t, err)
	command := regexp.MustCompile(`(?m)^bin/otelprof (convert .*)$`).FindStringSubmatch(string(page))
	require.NotNil(t, command)
	arguments := strings.Fields(strings.ReplaceAll(command[1], "./profiles", dir))
	for i, argument := range arguments {
		if argument == "profiles.parquet" {
			arguments[i] = filepath.Join(dir, argument)
		}
	}
	code, _, errs, _ := otelprof(t, arguments...)
	require.Zero(t, code, errs)
	for name, of := range map[string]struct {
		engine
		from string
	}{"DuckDB": {duckDB, "'profiles.parquet'"}, "ClickHouse": {clickHouse, "file('profiles.parquet', Parquet)"}} {
		t.Run(name, func(t *testing.T) {
			of.skipWithout(t)
			results := of.query(t, dir, "SELECT service, sum(value) / 1e9 AS seconds FROM "+of.from+" GROUP BY service ORDER BY service")
			assert.Equal(t, [][]row{{{"service": "cart", "seconds": 90.0}, {"service": "checkout", "seconds": 3780.375}}}, results)
		})
	}
}

// BenchmarkSQL asks the questions of the page about the day that BenchmarkLake of internal/query leaves in OTELCOL_PROFILES_LAKE. A time
// contains the start of the engine.
func BenchmarkSQL(b *testing.B) {
	dir := os.Getenv("OTELCOL_PROFILES_LAKE")
	if dir == "" {
		b.Skip("OTELCOL_PROFILES_LAKE names no directory")
	}
	blocks := sqlBlocks(b, "docs/sql.md")
	day := strings.NewReplacer("2026-11-02", "2026-11-09", "checkout", "service-3", "json.Marshal", "runtime.mallocgc")
	for name, of := range map[string]struct {
		engine
		setup string
	}{"DuckDB": {duckDB, blocks[0]}, "ClickHouse": {clickHouse, blocks[1]}} {
		for i, question := range questions {
			b.Run(name+"/"+question.name, func(b *testing.B) {
				of.skipWithout(b)
				for b.Loop() {
					of.query(b, dir, of.setup, day.Replace(blocks[3+i]))
				}
			})
		}
	}
}
