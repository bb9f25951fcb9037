// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command faulttable reads files of events that `go test -json` wrote and lists the
// fault-injection tests among them, in the order of docs/reliability.md: the rows that a test
// covers, its name and its verdict, and below them its rounds, its seeds, the faults that it
// injected, and the samples that were acknowledged, readable and counted as dropped.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	var tests []*test
	for _, name := range os.Args[1:] {
		file, err := os.Open(name)
		if err == nil {
			tests, err = read(tests, file)
			_ = file.Close() // it was only read
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "faulttable:", err)
			os.Exit(1)
		}
	}
	write(os.Stdout, tests)
}

var (
	// The rows that a test covers end its name.
	rowSuffix = regexp.MustCompile(`^Test(\w+?)((?:_[RPEJVMD][0-9]+)+)$`)
	// What profiletest.Rounds, Seed, Account and Injected log, and the reason of a skip.
	logged = regexp.MustCompile(`^\s*[\w.-]+\.go:\d+: (.*)$`)
	facts  = regexp.MustCompile(`^(\d+ rounds|seed \d+|account: .*)$`)
)

// test is a top-level test that covers rows, with what its subtests logged.
type test struct {
	pkg, full  string
	rows, name string
	verdict    string // DIED until an event ends it
	facts      []string
}

// event is one line of `go test -json`; see go doc test2json.
type event struct {
	Action, Package, Test, Output string
}

// read adds the tests of one stream of events.
func read(tests []*test, in io.Reader) ([]*test, error) {
	last := map[string]string{} // the last line that a test or subtest logged
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		top, sub, _ := strings.Cut(e.Test, "/")
		m := rowSuffix.FindStringSubmatch(top)
		if m == nil {
			continue
		}
		i := slices.IndexFunc(tests, func(t *test) bool { return t.pkg == e.Package && t.full == top })
		if i < 0 {
			i = len(tests)
			tests = append(tests, &test{e.Package, top, strings.ReplaceAll(m[2][1:], "_", " "), m[1], "DIED", nil})
		}
		t := tests[i]
		switch e.Action {
		case "output":
			if m := logged.FindStringSubmatch(strings.TrimRight(e.Output, "\n")); m != nil {
				last[e.Package+e.Test] = m[1]
				if facts.MatchString(m[1]) {
					t.facts = append(t.facts, strings.TrimPrefix(m[1], "account: "))
				}
			}
		case "skip":
			t.facts = append(t.facts, "skipped "+cmp.Or(sub, "all")+": "+last[e.Package+e.Test])
			fallthrough
		case "pass", "fail":
			if sub == "" {
				t.verdict = map[string]string{"pass": "passed", "skip": "skipped", "fail": "FAIL"}[e.Action]
			}
		}
	}
	return tests, lines.Err()
}

func write(out io.Writer, tests []*test) {
	if len(tests) == 0 {
		return
	}
	// The order of the first row on the page.
	place := func(t *test) int {
		row, _, _ := strings.Cut(t.rows, " ")
		number, _ := strconv.Atoi(row[1:]) // the expression matches digits only
		return strings.IndexByte("RPEJVMD", row[0])*1000 + number
	}
	slices.SortStableFunc(tests, func(a, b *test) int { return cmp.Or(place(a)-place(b), cmp.Compare(a.name, b.name)) })
	fmt.Fprint(out, "\nFault-injection tests (docs/reliability.md)\n\n")
	for _, t := range tests {
		fmt.Fprintf(out, "%-8s %s: %s\n", t.rows, t.name, t.verdict)
		for _, fact := range t.facts[:min(len(t.facts), 6)] {
			fmt.Fprintf(out, "%8s   %s\n", "", fact)
		}
		if more := len(t.facts) - 6; more > 0 {
			fmt.Fprintf(out, "%8s   and %d lines more\n", "", more)
		}
	}
}
