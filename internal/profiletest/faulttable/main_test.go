// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// events are what `go test -json` prints of a package, here without times.
func events(t *testing.T, all ...event) string {
	t.Helper()
	var lines strings.Builder
	for _, e := range all {
		e.Package = "example.com/p"
		line, err := json.Marshal(e)
		require.NoError(t, err)
		lines.Write(line)
		lines.WriteByte('\n')
	}
	return lines.String()
}

func run(t *testing.T, in string) (lines []string, failed bool) {
	t.Helper()
	var out strings.Builder
	failed, err := report(strings.NewReader(in), &out, false, false)
	require.NoError(t, err)
	return strings.Split(out.String(), "\n"), failed
}

// line returns the fields of the table's line of a row.
func line(t *testing.T, lines []string, row string) string {
	t.Helper()
	for _, line := range lines {
		if strings.HasPrefix(line, row+" ") {
			return strings.Join(strings.Fields(line), " ")
		}
	}
	require.Fail(t, "no such row", row)
	return ""
}

func TestReport(t *testing.T) {
	lines, failed := run(t, events(t,
		event{Action: "run", Test: "TestP8_Accounting"},
		event{Action: "output", Test: "TestP8_Accounting", Output: "    a_test.go:3: 20 rounds\n"},
		event{Action: "output", Test: "TestP8_Accounting", Output: "    a_test.go:4: seed 77\n"},
		event{Action: "output", Test: "TestP8_Accounting", Output: "    a_test.go:9: account: injected \"5 errors\", acknowledged 10, readable 8, dropped 2\n"},
		event{Action: "pass", Test: "TestP8_Accounting"},
		event{Action: "output", Test: "TestE1FailingCalls/zstd", Output: "    b_test.go:1: 4 rounds\n"},
		event{Action: "pass", Test: "TestE1FailingCalls/zstd"},
		event{Action: "output", Test: "TestE1FailingCalls/gzip", Output: "    b_test.go:7: no gzip here\n"},
		event{Action: "skip", Test: "TestE1FailingCalls/gzip"},
		event{Action: "output", Test: "TestE1FailingCalls/zstd sync", Output: "    b_test.go:1: account: injected \"5 failing calls, until repaired\", acknowledged 3, readable 3, dropped 0\n"},
		event{Action: "output", Test: "TestE1FailingCalls/zstd sync", Output: "    b_test.go:1: account: injected \"7 failing calls, 0 panics, until repaired\"\n"},
		event{Action: "pass", Test: "TestE1FailingCalls/zstd sync"},
		event{Action: "pass", Test: "TestE1FailingCalls"},
		event{Action: "output", Test: "TestE4PowerLoss", Output: "    b_test.go:7: needs root\n"},
		event{Action: "skip", Test: "TestE4PowerLoss"},
		event{Action: "pass", Test: "TestOther"},
		event{Action: "output", Output: "ok  \texample.com/p\t1s\n"},
		event{Action: "pass"},
	))
	assert.False(t, failed)
	assert.Equal(t, "ok  \texample.com/p\t1s", lines[0])
	assert.Equal(t, "P8 Accounting 20 5 errors 10 8 2 passed 77", line(t, lines, "P8"))
	assert.Equal(t, "E1 FailingCalls 4 12 failing calls, until repaired, 0 panics 3 3 0 passed in part -", line(t, lines, "E1"))
	assert.Equal(t, "E4 PowerLoss - - - - - not run -", line(t, lines, "E4"))
	assert.Equal(t, "D1 - - - - - - not run -", line(t, lines, "D1"))
	assert.Contains(t, lines, "TestE1FailingCalls not run, gzip: no gzip here")
	assert.Contains(t, lines, "TestE4PowerLoss not run, all: needs root")
}

func TestFailures(t *testing.T) {
	lines, failed := run(t, events(t,
		event{Action: "output", Test: "TestR1_Damage", Output: "    a_test.go:3: it panics\n"},
		event{Action: "fail", Test: "TestR1_Damage"},
		event{Action: "run", Test: "TestR12_ManyClients"},
		event{Action: "output", Test: "TestR12_ManyClients", Output: "panic: in a goroutine\n"},
		event{Action: "output", Output: "FAIL\texample.com/p\t1s\n"},
		event{Action: "fail"},
	))
	assert.True(t, failed)
	assert.Contains(t, lines, "    a_test.go:3: it panics")
	assert.Equal(t, "R1 Damage - - - - - FAIL -", line(t, lines, "R1"))
	assert.Equal(t, "R12 ManyClients - - - - - DIED -", line(t, lines, "R12"))

	lines, failed = run(t, events(t, event{Action: "build-output", Output: "syntax error\n"}, event{Action: "build-fail"}))
	assert.True(t, failed)
	assert.Equal(t, []string{"syntax error", ""}, lines, "without rows there is no table")
}
