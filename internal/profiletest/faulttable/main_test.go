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

// tableOf runs the command on the events of one package.
func tableOf(t *testing.T, all ...event) (lines []string) {
	t.Helper()
	var in, out strings.Builder
	for _, e := range all {
		e.Package = "example.com/p"
		require.NoError(t, json.NewEncoder(&in).Encode(e))
	}
	in.WriteString("not an event\n")
	tests := tests{}
	require.NoError(t, tests.read(strings.NewReader(in.String())))
	tests.write(&out)
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}

func TestTableSumsWhatSubtestsLog(t *testing.T) {
	assert.Equal(t, []string{
		"",
		"Fault-injection tests (docs/reliability.md)",
		"",
		"row test rounds injected acknowledged readable dropped verdict seed",
		"R7 R9 RepairsAreCounted - - - - - passed 1 2 3 and 1 more",
		"P8 Accounting 20 5 errors 10 8 2 passed 77",
		"P10 Killed - - - - - passed -",
		"E1 FailingCalls 4 12 failing calls, until repaired, 0 panics 3 3 0 passed in part -",
		"E4 PowerLoss - - - - - skipped -",
		"E1 FailingCalls: skipped gzip: no gzip here",
		"E4 PowerLoss: skipped all: needs root",
	}, tableOf(t,
		event{Action: "run", Test: "TestAccounting_P8"},
		event{Action: "output", Test: "TestAccounting_P8", Output: "    a_test.go:3: 20 rounds\n"},
		event{Action: "output", Test: "TestAccounting_P8", Output: "    a_test.go:4: seed 77\n"},
		event{Action: "output", Test: "TestAccounting_P8", Output: "    a_test.go:9: account: injected \"5 errors\", acknowledged 10, readable 8, dropped 2\n"},
		event{Action: "pass", Test: "TestAccounting_P8"},
		event{Action: "pass", Test: "TestKilled_P10"},
		event{Action: "output", Test: "TestFailingCalls_E1/zstd", Output: "    b_test.go:1: 4 rounds\n"},
		event{Action: "pass", Test: "TestFailingCalls_E1/zstd"},
		event{Action: "output", Test: "TestFailingCalls_E1/gzip", Output: "    b_test.go:7: no gzip here\n"},
		event{Action: "skip", Test: "TestFailingCalls_E1/gzip"},
		event{Action: "output", Test: "TestFailingCalls_E1/zstd sync", Output: "    b_test.go:1: account: injected \"5 failing calls, until repaired\", acknowledged 3, readable 3, dropped 0\n"},
		event{Action: "output", Test: "TestFailingCalls_E1/zstd sync", Output: "    b_test.go:1: account: injected \"7 failing calls, 0 panics, until repaired\"\n"},
		event{Action: "pass", Test: "TestFailingCalls_E1/zstd sync"},
		event{Action: "pass", Test: "TestFailingCalls_E1"},
		event{Action: "output", Test: "TestPowerLoss_E4", Output: "    b_test.go:7: needs root\n"},
		event{Action: "skip", Test: "TestPowerLoss_E4"},
		event{Action: "output", Test: "TestRepairsAreCounted_R7_R9", Output: "    c_test.go:7: seed 1\n"},
		event{Action: "output", Test: "TestRepairsAreCounted_R7_R9", Output: "    c_test.go:7: seed 2\n"},
		event{Action: "output", Test: "TestRepairsAreCounted_R7_R9", Output: "    c_test.go:7: seed 3\n"},
		event{Action: "output", Test: "TestRepairsAreCounted_R7_R9", Output: "    c_test.go:7: seed 4\n"},
		event{Action: "pass", Test: "TestRepairsAreCounted_R7_R9"},
		event{Action: "pass", Test: "TestOther"},
		event{Action: "output", Output: "ok  \texample.com/p\t1s\n"},
		event{Action: "pass"},
	))
}

func TestTableNamesFailedAndDeadTests(t *testing.T) {
	lines := tableOf(t,
		event{Action: "output", Test: "TestDamage_R1", Output: "    a_test.go:3: it panics\n"},
		event{Action: "fail", Test: "TestDamage_R1"},
		event{Action: "run", Test: "TestManyClients_R12"},
		event{Action: "output", Test: "TestManyClients_R12", Output: "panic: in a goroutine\n"},
		event{Action: "output", Output: "FAIL\texample.com/p\t1s\n"},
		event{Action: "fail"},
	)
	assert.Contains(t, lines, "R1 Damage - - - - - FAIL -")
	assert.Contains(t, lines, "R12 ManyClients - - - - - DIED -")
	assert.Empty(t, tableOf(t, event{Action: "pass", Test: "TestOther"}), "without rows there is no table")
}
