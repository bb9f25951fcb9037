// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command benchtable reads what `go test -bench` prints and writes a table for
// each benchmark: a row for each of its sub-benchmarks, a column for each part
// key=value of their names and for each of their metrics. Lines that begin with
// "note: ", and what is neither a result nor the usual frame, are passed on.
package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// tables tells of some benchmarks the title, and the metrics in the order in which
// they are shown. Of others all are.
var tables = map[string]struct{ title, metrics string }{
	"Unmarshal": {
		"Translate: pprof to pdata, against pdata's unmarshal of the result and google/pprof's parse; medians, taken in turns",
		"pprof-B ours-µs google-µs pdata-µs ours/pdata google/pdata ours-allocs google-allocs pdata-allocs",
	},
	"Sizes": {
		"Sizes: a million locations, and a hundred thousand distinct labels against equal ones (R8 wants 2 s, and 3 times)",
		"million-ms distinct-ms distinct/equal",
	},
	"Difference": {
		"Scrape: the difference of a heap profile from the one before, against google/pprof's parse and merge; medians, taken in turns",
		"pprof-B kept-B ours-µs google-µs ours/google ours-allocs google-allocs",
	},
	"Size": {
		"Size: pprof as google/pprof writes it, our translation, and the canonical output of a window.\n" +
			"Retained is what was parsed, or the window; allocated is to parse and write it, from the pprof.\n" +
			"gz/pprof is against google/pprof's, gz/file against the file as it came, all gzipped anew",
		"plain-B gzip-B zstd-B gz/pprof gz/file zstd/pprof retained-objects label-sets allocated-B allocs",
	},
	"Merge": {
		"Merge: add one more profile, readings summed; medians per profile, taken in turns. Ours into a window that holds it,\n" +
			"one that holds it and ten others, and one that holds ten others; google/pprof ten at once, and into one that holds it;\n" +
			"pdata's MergeTo into one that holds it (quadratic in this version, so not of large ones)",
		"pprof-B samples held-µs ten-µs new-µs google-µs pairwise-µs pdata-µs held/google held/pairwise ten/google held/pdata held-allocs google-allocs",
	},
	"MergeMillion": {
		"Merge: a small profile into a window of a million locations, against a window of nothing else; medians, taken in turns",
		"locations window-B empty-µs million-µs million/empty",
	},
	"Write": {
		"Write: files of plain and compressed records, against pdata's marshal of the same and collector-contrib's file exporter;\n" +
			"medians, taken in turns, nothing synced. Sizes are of the files against the records. Contrib answers before it has written",
		"record-B pdata-µs none-µs none/pdata contrib/pdata none-MB/s contrib-MB/s gzip-MB/s zstd-MB/s contrib-zstd-MB/s gzip-size zstd-size contrib-zstd-size",
	},
	"Push": {
		"Push: gzipped pprof over loopback into the receiver, against gunzip and translation alone; medians, taken in turns.\n" +
			"The rest is HTTP on both sides, loopback, and the receiver's own: what its handler takes over gunzip and translation",
		"pprof-B gzip-B pushes/s MB/s gunzip-% translate-% rest-% rest-µs own-µs own-%",
	},
	"InFlight": {
		"In flight: memory of a request that waits for the next component, against the bytes that max_in_flight counts of it",
		"counted-B heap-B heap/counted",
	},
	"Load": {
		"Load: the corpus, pushed for 5 s over loopback through the program (receiver, a window of 2 s, files in zstd), with the\n" +
			"pushing side on the same machine. In is what is pushed, gzipped; CPU is the program's for each profile",
		"profiles/s in-MB/s pprof-MB/s p50-ms p99-ms cpu-ms peak-MiB disk/in refused",
	},
	"Sidecar": {
		"Sidecar: one core (GOMAXPROCS=1), GOMEMLIMIT=200MiB, memory_limit 64MiB, profiles of one size, faster and faster",
		"pprof-B profiles/s in-MB/s p50-ms p99-ms core-% cpu-ms peak-MiB refused",
	},
	"Scale": {
		"Scale: windows that grow, in profiles, in distinct stacks, and in services. A profile is added to what is there, and\n" +
			"what is there is written; the window is as memory_limit counts it, out is the OTLP that it writes",
		"add-µs flush-ms flush/profile-µs window-B out-B window/out",
	},
	"Retained": {
		"Retained by a window, against the OTLP bytes it writes; estimated as for memory_limit, and as the heap shows",
		"otlp-B estimate-B heap-B heap-objects heap/otlp estimate/heap",
	},
}

var result = regexp.MustCompile(`^Benchmark(\w+?)(?:/(\S+?))?(?:-\d+)?\s+\d+\t(.*)$`)

var frame = regexp.MustCompile(`^(PASS|ok\s|\?\s|goos:|goarch:|pkg:|cpu:|\s*$|.*no test files)`)

func main() {
	if err := format(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "benchtable:", err)
		os.Exit(1)
	}
}

func format(in io.Reader, out io.Writer) error {
	var t *table
	noted, inLog := map[string]bool{}, false
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		m := result.FindStringSubmatch(line)
		switch {
		case m != nil:
			if t == nil || t.benchmark != m[1] {
				t.write(out)
				t = &table{benchmark: m[1]}
			}
			t.add(cmp.Or(m[2], m[1]), m[3])
		case strings.HasPrefix(line, "--- BENCH: "): // what it logs follows, indented
			inLog = true
			continue
		case inLog && strings.HasPrefix(line, " "):
			continue
		case frame.MatchString(line) || noted[line]:
		default:
			noted[line] = strings.HasPrefix(line, "note: ")
			fmt.Fprintln(out, line)
		}
		inLog = false
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
	row := map[string]string{}
	key := "benchmark"
	for part := range strings.SplitSeq(name, "/") {
		if k, value, ok := strings.Cut(part, "="); ok {
			key, part = k, value
			row[key] = part
		} else {
			row[key] = strings.TrimPrefix(row[key]+"/"+part, "/")
		}
		if !slices.Contains(t.keys, key) {
			t.keys = append(t.keys, key)
		}
	}
	fields := strings.Fields(metrics)
	for i := 0; i+1 < len(fields); i += 2 {
		value, metric := fields[i], fields[i+1]
		row[metric] = number(value, isRatio(metric))
		if !slices.Contains(t.metrics, metric) {
			t.metrics = append(t.metrics, metric)
		}
	}
	t.rows = append(t.rows, row)
}

func isRatio(metric string) bool {
	return strings.Contains(metric, "/") && !strings.HasSuffix(metric, "/op") && metric != "MB/s"
}

// number shows whole numbers, in groups of three digits, and two or three decimals
// of what is a ratio or small.
func number(text string, ratio bool) string {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	switch {
	case ratio && v < 0.1:
		return strconv.FormatFloat(v, 'f', 3, 64)
	case ratio || v < 100 && v != math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	text = strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// write writes the metric name-unit under a head of two lines.
func (t *table) write(out io.Writer) {
	if t == nil {
		return
	}
	title, metrics := t.benchmark, t.metrics
	if known, ok := tables[t.benchmark]; ok {
		title, metrics = known.title, strings.Fields(known.metrics)
	}
	var grid [][]string
	head, units := slices.Clone(t.keys), slices.Repeat([]string{""}, len(t.keys))
	for _, metric := range metrics {
		name, unit, _ := strings.Cut(metric, "-")
		head, units = append(head, name), append(units, unit)
	}
	grid = append(grid, head, units)
	for _, row := range t.rows {
		var cells []string
		for _, column := range slices.Concat(t.keys, metrics) {
			cell := strings.ReplaceAll(row[column], "_", " ")
			if cell == "" {
				cell = "-"
			}
			cells = append(cells, cell)
		}
		grid = append(grid, cells)
	}
	widths := make([]int, len(head))
	for _, cells := range grid {
		for i, cell := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	fmt.Fprintf(out, "\n%s\n\n", title)
	for _, cells := range grid {
		var line strings.Builder
		for i, cell := range cells {
			if i < len(t.keys) {
				fmt.Fprintf(&line, "%-*s  ", widths[i], cell)
			} else {
				fmt.Fprintf(&line, "%*s  ", widths[i], cell)
			}
		}
		fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
	}
}
