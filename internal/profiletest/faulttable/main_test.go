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

func TestTestsAreListedByRowWithTheirFacts(t *testing.T) {
	var in, out strings.Builder
	in.WriteString("not an event\n")
	for _, e := range []event{
		{Action: "output", Test: "TestAccounting_P8", Output: "    a_test.go:3: 20 rounds\n"},
		{Action: "output", Test: "TestAccounting_P8/part", Output: "    a_test.go:4: seed 77\n"},
		{Action: "output", Test: "TestAccounting_P8", Output: "    a_test.go:9: account: injected \"5 errors\", acknowledged 10, readable 8, dropped 2\n"},
		{Action: "output", Test: "TestAccounting_P8", Output: "    a_test.go:9: another line\n"},
		{Action: "pass", Test: "TestAccounting_P8"},
		{Action: "output", Test: "TestPowerLoss_E4", Output: "    b_test.go:7: needs root\n"},
		{Action: "skip", Test: "TestPowerLoss_E4"},
		{Action: "fail", Test: "TestDamage_R1"},
		{Action: "output", Test: "TestManyClients_R2_R12", Output: "panic: in a goroutine\n"},
		{Action: "pass", Test: "TestOther"},
	} {
		e.Package = "example.com/p"
		require.NoError(t, json.NewEncoder(&in).Encode(e))
	}
	tests, err := read(nil, strings.NewReader(in.String()))
	require.NoError(t, err)
	write(&out, tests)
	assert.Equal(t, `
Fault-injection tests (docs/reliability.md)

R1       Damage: FAIL
R2 R12   ManyClients: DIED
P8       Accounting: passed
           20 rounds
           seed 77
           injected "5 errors", acknowledged 10, readable 8, dropped 2
E4       PowerLoss: skipped
           skipped all: needs root
`, out.String())
}
