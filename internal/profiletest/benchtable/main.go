// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command benchtable reads the output of `go test -bench` and writes a table for each
// benchmark: a row for each sub-benchmark, a column for each key=value part of its name and
// for each metric. Our benchmarks report contestants that take turns, and their ratios, as
// metrics of one result; benchstat prints a table for each metric instead. It is for
// comparing two runs (make bench-compare).
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// tables are the titles of benchmarks, and their metrics in the order of the columns. Other
// benchmarks show all metrics.
var tables = map[string]struct{ title, metrics string }{
	"Unmarshal": {
		"pprof to pdata, compared with pdata's unmarshal of the result and google/pprof's parse",
		"pprof-B ours-µs google-µs pdata-µs ours/pdata google/pdata ours-allocs google-allocs pdata-allocs",
	},
	"Sizes": {
		"A million locations; 100,000 distinct labels compared with equal ones",
		"million-ms distinct-ms distinct/equal",
	},
	"Size": {
		"Sizes of google/pprof's output, our translation and a window's canonical output; memory to parse and write it",
		"plain-B gzip-B zstd-B gz/pprof gz/file zstd/pprof retained-objects label-sets allocated-B allocs",
	},
	"JFR": {
		"JFR to pdata, compared with jfr-parser's parse alone, its conversion to pprof, and pdata's unmarshal of the result",
		"jfr-B ours-µs jfr-parser-µs jfr-parser-pprof-µs pdata-µs ours/jfr-parser ours/jfr-parser-pprof ours/pdata ours-allocs jfr-parser-allocs pdata-allocs otlp-gz/jfr-gz",
	},
	"Merge": {
		"Add one profile to a window that holds it (held), that and ten others (ten), or ten others (new), compared with google/pprof's and pdata's merge",
		"pprof-B samples held-µs ten-µs new-µs google-µs pairwise-µs pdata-µs held/google held/pairwise ten/google held/pdata held-allocs google-allocs",
	},
	"MergeMillion": {
		"Add a small profile to a window of a million locations, compared with an empty window",
		"locations window-B empty-µs million-µs million/empty",
	},
	"Producers": {
		"Pass profiles to a window from two goroutines, compared with one",
		"one/s two/s two/one",
	},
	"Write": {
		"Write files, compared with pdata's marshal of the same records and contrib's file exporter (which answers before it writes)",
		"record-B pdata-µs none-µs none/pdata contrib/pdata none-MB/s contrib-MB/s gzip-MB/s zstd-MB/s contrib-zstd-MB/s gzip-size zstd-size contrib-zstd-size",
	},
	"Load": {
		"The corpus, pushed for 5 s through the program on the same machine; CPU of the program for each profile",
		"profiles/s in-MB/s pprof-MB/s p50-ms p99-ms cpu-ms peak-MiB disk/in refused",
	},
	"PushToGateway": {
		"Push to the shipped sidecar: time to the response, and to the arrival at a gateway",
		"response-p50-ms response-p99-ms gateway-p50-ms gateway-p99-ms cpu-ms requests",
	},
	"FirstRelease": {
		"The same load on the first release and on this program, in turns: CPU for each profile, and time to the response",
		"pprof-B first-cpu-ms now-cpu-ms cpu-now/first first-p50-ms now-p50-ms first-p99-ms now-p99-ms p99-now/first first-peak-MiB now-peak-MiB",
	},
	"Sidecar": {
		"One core, GOMEMLIMIT=200MiB, memory_limit 64MiB, profiles of one size at increasing rates",
		"pprof-B profiles/s in-MB/s p50-ms p99-ms core-% cpu-ms peak-MiB refused",
	},
	"Scale": {
		"Windows that grow in profiles, distinct stacks and services: add one profile, and flush",
		"add-µs flush-ms flush/profile-µs window-B out-B window/out",
	},
	"Query": {
		"Sum and list 1,000 windows of one service, compared with reading and unmarshalling them",
		"file-B read-ms query-ms list-ms query/read list/read",
	},
	"Retained": {
		"Memory of a window, estimated and on the heap, compared with its OTLP output",
		"otlp-B estimate-B heap-B heap-objects heap/otlp estimate/heap",
	},
}

var (
	result = regexp.MustCompile(`^Benchmark(\w+?)(?:/(\S+?))?(?:-\d+)?\s+\d+\t(.*)$`)
	frame  = regexp.MustCompile(`^(PASS|ok\s|\?\s|goos:|goarch:|pkg:|cpu:|--- BENCH: |    |\s*$|.*no test files)`)
)

func main() {
	if err := format(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "benchtable:", err)
		os.Exit(1)
	}
}

// format passes on other lines than results, such as errors, and each note once. Logs of
// benchmarks, which are indented, are shown only after a failure.
func format(in io.Reader, out io.Writer) error {
	var t table
	failed, noted := false, map[string]bool{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if m := result.FindStringSubmatch(line); m != nil {
			if t.benchmark != m[1] {
				t.write(out)
				t = table{benchmark: m[1]}
			}
			t.add(cmp.Or(m[2], m[1]), m[3])
			continue
		}
		if !noted[line] && !frame.MatchString(line) || failed && strings.HasPrefix(line, "    ") {
			fmt.Fprintln(out, line)
		}
		noted[line] = strings.HasPrefix(line, "note: ")
		failed = strings.HasPrefix(line, "--- FAIL") || failed && strings.HasPrefix(line, "    ")
	}
	t.write(out)
	return lines.Err()
}

type table struct {
	benchmark string
	keys      []string // of the parts of names
	metrics   []string
	rows      []map[string]string // by key or metric
}

func (t *table) add(name, metrics string) {
	row, key := map[string]string{}, "benchmark"
	for part := range strings.SplitSeq(name, "/") {
		if k, value, ok := strings.Cut(part, "="); ok {
			key, row[k] = k, value
		} else { // a slash within a value
			row[key] = strings.TrimPrefix(row[key]+"/"+part, "/")
		}
		if !slices.Contains(t.keys, key) {
			t.keys = append(t.keys, key)
		}
	}
	fields := strings.Fields(metrics)
	for i := 0; i+1 < len(fields); i += 2 {
		row[fields[i+1]] = round(fields[i])
		if !slices.Contains(t.metrics, fields[i+1]) {
			t.metrics = append(t.metrics, fields[i+1])
		}
	}
	t.rows = append(t.rows, row)
}

// round keeps three significant digits of a small number, and no decimals of a large one.
func round(text string) string {
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return text
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func (t *table) write(out io.Writer) {
	if t.benchmark == "" {
		return
	}
	title, metrics := t.benchmark, t.metrics
	if known, ok := tables[t.benchmark]; ok {
		title, metrics = title+": "+known.title, strings.Fields(known.metrics)
	}
	columns := slices.Concat(t.keys, metrics)
	fmt.Fprintf(out, "\n%s\n\n", title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, strings.Join(columns, "\t")+"\t")
	for _, row := range t.rows {
		for _, column := range columns {
			fmt.Fprint(w, cmp.Or(strings.ReplaceAll(row[column], "_", " "), "-"), "\t")
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // writes to out, as all other lines do
}
