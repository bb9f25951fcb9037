// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command faulttable reads files of events that `go test -json` wrote and prints a table of
// the fault-injection tests among them: how many rounds each ran, what it injected, how much
// was acknowledged, readable and counted as dropped, the verdict, and the seeds. A test's
// name ends in the row of docs/reliability.md that it covers, such as
// TestFlushRetriesAfterRetryableError_P8.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

func main() {
	tests := tests{}
	for _, name := range os.Args[1:] {
		if err := readFile(tests, name); err != nil {
			fmt.Fprintln(os.Stderr, "faulttable:", err)
			os.Exit(1)
		}
	}
	tests.write(os.Stdout)
}

func readFile(tests tests, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return tests.read(file)
}

// event is one line of `go test -json`; see go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

type testName struct{ pkg, test string }

// read adds the tests of one stream of events.
func (t tests) read(in io.Reader) error {
	outputs := map[testName][]string{} // of tests that are still running
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil && e.Test != "" {
			name := testName{e.Package, e.Test}
			switch e.Action {
			case "output":
				outputs[name] = append(outputs[name], e.Output)
			case "pass", "fail", "skip":
				t.end(name, e.Action, outputs[name])
				delete(outputs, name)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	// If its process dies, a test has no event that ends it.
	for name, output := range outputs {
		t.end(name, "died", output)
	}
	return nil
}
