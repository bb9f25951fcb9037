// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command faulttable reads what `go test -json` prints, shows of it what `go test`
// shows without -v, and ends with a table of the fault rows that ran: how often, what
// was injected, what was acknowledged, readable and counted as dropped, the verdict,
// and the seeds. A test belongs to the row that its name begins with, as in
// TestP8_Accounting. A row, or a part of it, that was skipped is shown as not run.
//
//	-v         shows all output of tests
//	-progress  shows when each test of a row begins and ends
//
// It exits with 1 if a test or package has failed.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	verbose := flag.Bool("v", false, "show all output of tests")
	progress := flag.Bool("progress", false, "show when each test of a row begins and ends")
	flag.Parse()
	failed, err := report(os.Stdin, os.Stdout, *verbose, *progress)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faulttable:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}

// event is one line of `go test -json`; see go doc test2json.
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	Elapsed     float64 // seconds
	FailedBuild string
}

type testName struct{ pkg, test string }

func report(in io.Reader, out io.Writer, verbose, progress bool) (failed bool, err error) {
	var (
		lines   = bufio.NewReader(in)
		outputs = map[testName][]string{} // of tests that have not ended
		rows    = rows{}
	)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				// What tools say beside the events.
				fmt.Fprint(out, string(line))
			} else {
				failed = handle(e, out, outputs, rows, verbose, progress) || failed
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return failed, err
		}
	}
	// A package whose process died ends without a word on the tests it was in.
	for name, output := range outputs {
		if name.test != "" {
			rows.end(name, "died", output)
		}
	}
	rows.write(out)
	return failed, nil
}

// handle passes an event on and says whether it is a failure.
func handle(e event, out io.Writer, outputs map[testName][]string, rows rows, verbose, progress bool) bool {
	name := testName{e.Package, e.Test}
	top, _, isSub := strings.Cut(e.Test, "/")
	rowTest := e.Test != "" && !isSub && rowOf(top) != ""
	switch e.Action {
	case "build-output":
		fmt.Fprint(out, e.Output)
	case "build-fail":
		return true
	case "run":
		if progress && rowTest {
			fmt.Fprintf(out, "    %s ...\n", e.Test)
		}
	case "output":
		if verbose || e.Test == "" && !isNoise(e.Output) {
			fmt.Fprint(out, e.Output)
		}
		outputs[name] = append(outputs[name], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			return e.Action == "fail"
		}
		if e.Action == "fail" && !verbose {
			fmt.Fprint(out, strings.Join(outputs[name], ""))
		}
		if progress && rowTest {
			fmt.Fprintf(out, "    %s %s after %.0fs\n", e.Test, e.Action, e.Elapsed)
		}
		rows.end(name, e.Action, outputs[name])
		delete(outputs, name)
		return e.Action == "fail"
	}
	return false
}

// isNoise is what packages print that `go test` does not show.
func isNoise(output string) bool {
	return output == "PASS\n" || strings.HasPrefix(output, "testing: warning: no tests to run") || strings.Contains(output, "[no test files]") || strings.Contains(output, "[no tests to run]")
}
