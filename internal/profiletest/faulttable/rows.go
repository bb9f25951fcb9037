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

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

var (
	rowName  = regexp.MustCompile(`^Test([RPED][0-9]+)(?:_|[A-Z]|$)`)
	rounds   = regexp.MustCompile(`: (\d+) rounds$`)
	seeds    = regexp.MustCompile(`: seed (\d+)$`)
	injected = regexp.MustCompile(`: account: injected ("(?:[^"\\]|\\.)*")(?:, acknowledged (\d+), readable (\d+), dropped (\d+))?$`)
	// A number of things, as "3 SIGKILL".
	counted = regexp.MustCompile(`^(\d+) (.+)$`)
	// Where a test says it: "    file_test.go:12: why".
	said = regexp.MustCompile(`^\s*[\w.-]+\.go:\d+: (.*)$`)
)

// rowOf returns the row that a test is named after, as "P8", or "".
func rowOf(test string) string {
	if m := rowName.FindStringSubmatch(test); m != nil {
		return m[1]
	}
	return ""
}

// rowTest is a line of the table.
type rowTest struct {
	row, test string
	verdict   string   // pass, fail, skip, died
	notRun    []string // why a part, or the whole, was skipped
	rounds    int
	injected  []injection
	seeds     []string

	accounted                       bool
	acknowledged, readable, dropped int
}

// injection is so many of one thing, or something that is not counted.
type injection struct {
	what      string
	isCounted bool
	count     int
}

func (i injection) String() string {
	if i.isCounted {
		return strconv.Itoa(i.count) + " " + i.what
	}
	return i.what
}

// rows holds the line of each top-level test of a row.
type rows map[testName]*rowTest

// end takes what a test, or a part of one, printed and how it ended.
func (r rows) end(name testName, verdict string, output []string) {
	top, part, _ := strings.Cut(name.test, "/")
	row := rowOf(top)
	if row == "" {
		return
	}
	key := testName{name.pkg, top}
	t := r[key]
	if t == nil {
		t = &rowTest{row: row, test: top}
		r[key] = t
	}
	if part == "" {
		t.verdict = verdict
	}
	var reason string
	for _, line := range output {
		line = strings.TrimRight(line, "\n")
		t.read(line)
		if m := said.FindStringSubmatch(line); m != nil {
			reason = m[1]
		}
	}
	if verdict == "skip" {
		t.notRun = append(t.notRun, cmp.Or(part, "all")+": "+reason)
	}
}

func (t *rowTest) read(line string) {
	if m := rounds.FindStringSubmatch(line); m != nil {
		t.rounds += number(m[1])
	}
	if m := seeds.FindStringSubmatch(line); m != nil {
		t.seeds = append(t.seeds, m[1])
	}
	if m := injected.FindStringSubmatch(line); m != nil {
		what, err := strconv.Unquote(m[1])
		if err != nil {
			what = m[1]
		}
		for one := range strings.SplitSeq(what, ", ") {
			t.inject(one)
		}
		if m[2] != "" {
			t.accounted = true
			t.acknowledged += number(m[2])
			t.readable += number(m[3])
			t.dropped += number(m[4])
		}
	}
}

// inject adds what one part of a test injected to what others did.
func (t *rowTest) inject(what string) {
	one := injection{what: what}
	if m := counted.FindStringSubmatch(what); m != nil {
		one = injection{m[2], true, number(m[1])}
	}
	for i := range t.injected {
		if t.injected[i].what == one.what && t.injected[i].isCounted == one.isCounted {
			t.injected[i].count += one.count
			return
		}
	}
	t.injected = append(t.injected, one)
}

// list says all that was injected.
func (t *rowTest) list() string {
	var all []string
	for _, one := range t.injected {
		all = append(all, one.String())
	}
	return strings.Join(all, ", ")
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits) // as the expressions matched it
	return n
}

// write writes the table, rows in their order, if any test of a row ran.
func (r rows) write(out io.Writer) {
	if len(r) == 0 {
		return
	}
	tests := slices.SortedFunc(maps.Values(r), func(a, b *rowTest) int { return cmp.Compare(a.test, b.test) })
	fmt.Fprint(out, "\nFault rows\n\n")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(cells ...string) { fmt.Fprintln(table, strings.Join(cells, "\t")) }
	line("row", "test", "rounds", "injected", "acknowledged", "readable", "dropped", "verdict", "seed")
	var notes []string
	for _, row := range profiletest.FaultRows() {
		found := false
		for _, t := range tests {
			if t.row != row {
				continue
			}
			found = true
			cells := []string{row, strings.TrimLeft(strings.TrimPrefix(t.test, "Test"+row), "_"), "-", cmp.Or(t.list(), "-"), "-", "-", "-", t.outcome(), cmp.Or(strings.Join(first(t.seeds, 3), " "), "-")}
			if t.rounds > 0 {
				cells[2] = strconv.Itoa(t.rounds)
			}
			if t.accounted {
				cells[4], cells[5], cells[6] = strconv.Itoa(t.acknowledged), strconv.Itoa(t.readable), strconv.Itoa(t.dropped)
			}
			line(cells...)
			for _, why := range t.notRun {
				notes = append(notes, fmt.Sprintf("%s not run, %s", t.test, why))
			}
		}
		if !found {
			line(row, "-", "-", "-", "-", "-", "-", "not run", "-")
		}
	}
	_ = table.Flush() // as with all that is printed here
	for _, note := range notes {
		fmt.Fprintln(out, note)
	}
}

func (t *rowTest) outcome() string {
	switch {
	case t.verdict == "skip":
		return "not run"
	case t.verdict != "pass":
		return strings.ToUpper(cmp.Or(t.verdict, "died"))
	case len(t.notRun) > 0:
		return "passed in part"
	}
	return "passed"
}

func first(texts []string, n int) []string {
	if len(texts) > n {
		return append(slices.Clone(texts[:n]), fmt.Sprintf("and %d more", len(texts)-n))
	}
	return texts
}
