// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

var (
	// The rows that a test covers end its name.
	rowSuffix = regexp.MustCompile(`^Test(\w+?)((?:_[RPEMVD][0-9]+)+)$`)

	rounds   = regexp.MustCompile(`: (\d+) rounds$`)
	seeds    = regexp.MustCompile(`: seed (\d+)$`)
	injected = regexp.MustCompile(`: account: injected ("(?:[^"\\]|\\.)*")(?:, acknowledged (\d+), readable (\d+), dropped (\d+))?$`)
	counted  = regexp.MustCompile(`^(\d+) (.+)$`) // such as "3 SIGKILL"
	logged   = regexp.MustCompile(`^\s*[\w.-]+\.go:\d+: (.*)$`)
)

// rowsOf splits a test's name into the rows that it covers and the rest.
func rowsOf(test string) (rows []string, name string) {
	if m := rowSuffix.FindStringSubmatch(test); m != nil {
		return strings.Split(m[2][1:], "_"), m[1]
	}
	return nil, ""
}

// result is the sum of the logs of a test and its subtests.
type result struct {
	rows    []string
	name    string
	verdict string   // pass, fail, skip, died
	skipped []string // "subtest: reason"
	rounds  int
	seeds   []string

	injected []string       // in the order in which they were first logged
	counts   map[string]int // of those that have a number

	accounted                       bool
	acknowledged, readable, dropped int
}

// tests holds the results by top-level test.
type tests map[testName]*result

// end adds the output of a test or subtest that has ended.
func (t tests) end(name testName, verdict string, output []string) {
	top, sub, _ := strings.Cut(name.test, "/")
	rows, short := rowsOf(top)
	if rows == nil {
		return
	}
	key := testName{name.pkg, top}
	r := t[key]
	if r == nil {
		r = &result{rows: rows, name: short, verdict: "died", counts: map[string]int{}}
		t[key] = r
	}
	if sub == "" {
		r.verdict = verdict
	}
	reason := ""
	for _, line := range output {
		line = strings.TrimRight(line, "\n")
		r.readLine(line)
		if m := logged.FindStringSubmatch(line); m != nil {
			reason = m[1]
		}
	}
	if verdict == "skip" {
		r.skipped = append(r.skipped, cmp.Or(sub, "all")+": "+reason)
	}
}

func (r *result) readLine(line string) {
	if m := rounds.FindStringSubmatch(line); m != nil {
		r.rounds += number(m[1])
	}
	if m := seeds.FindStringSubmatch(line); m != nil {
		r.seeds = append(r.seeds, m[1])
	}
	if m := injected.FindStringSubmatch(line); m != nil {
		list, err := strconv.Unquote(m[1])
		if err != nil {
			list = m[1]
		}
		for fault := range strings.SplitSeq(list, ", ") {
			if m := counted.FindStringSubmatch(fault); m != nil {
				fault = m[2]
				r.counts[fault] += number(m[1])
			}
			if !slices.Contains(r.injected, fault) {
				r.injected = append(r.injected, fault)
			}
		}
		if m[2] != "" {
			r.accounted = true
			r.acknowledged += number(m[2])
			r.readable += number(m[3])
			r.dropped += number(m[4])
		}
	}
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // the expressions match digits only
	return n
}

// write prints the table, if any test covers a row.
func (t tests) write(out io.Writer) {
	if len(t) == 0 {
		return
	}
	fmt.Fprint(out, "\nFault-injection tests (docs/reliability.md)\n\n")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "row\ttest\trounds\tinjected\tacknowledged\treadable\tdropped\tverdict\tseed")
	results := slices.SortedFunc(maps.Values(t), func(a, b *result) int {
		return cmp.Or(compareRows(a.rows[0], b.rows[0]), cmp.Compare(a.name, b.name))
	})
	for _, r := range results {
		fmt.Fprintln(table, strings.Join(r.cells(), "\t"))
	}
	_ = table.Flush() // writes to out, as all other lines do
	for _, r := range results {
		for _, why := range r.skipped {
			fmt.Fprintf(out, "%s %s: skipped %s\n", strings.Join(r.rows, " "), r.name, why)
		}
	}
}

// compareRows orders rows as docs/reliability.md does.
func compareRows(a, b string) int {
	const letters = "RPEMVD"
	return cmp.Or(
		cmp.Compare(strings.IndexByte(letters, a[0]), strings.IndexByte(letters, b[0])),
		cmp.Compare(number(a[1:]), number(b[1:])))
}

func (r *result) cells() []string {
	cells := []string{strings.Join(r.rows, " "), r.name, "-", "-", "-", "-", "-", r.outcome(), "-"}
	if r.rounds > 0 {
		cells[2] = strconv.Itoa(r.rounds)
	}
	var injected []string
	for _, fault := range r.injected {
		if n, ok := r.counts[fault]; ok {
			fault = strconv.Itoa(n) + " " + fault
		}
		injected = append(injected, fault)
	}
	cells[3] = cmp.Or(strings.Join(injected, ", "), "-")
	if r.accounted {
		cells[4], cells[5], cells[6] = strconv.Itoa(r.acknowledged), strconv.Itoa(r.readable), strconv.Itoa(r.dropped)
	}
	if len(r.seeds) > 3 {
		r.seeds = append(r.seeds[:3:3], fmt.Sprintf("and %d more", len(r.seeds)-3))
	}
	cells[8] = cmp.Or(strings.Join(r.seeds, " "), "-")
	return cells
}

func (r *result) outcome() string {
	switch {
	case r.verdict == "skip":
		return "skipped"
	case r.verdict != "pass":
		return strings.ToUpper(r.verdict)
	case len(r.skipped) > 0:
		return "passed in part"
	}
	return "passed"
}
