// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// Soak tells whether tests run the full counts of the fault tables: SOAK is set, to 1
// or to a duration such as 10m. limit is that duration, which bounds each of the rows
// that go on for a given time, and 0 for no bound.
func Soak(tb testing.TB) (full bool, limit time.Duration) {
	tb.Helper()
	switch text := os.Getenv("SOAK"); text {
	case "", "0":
		return false, 0
	case "1":
		return true, 0
	default:
		limit, err := time.ParseDuration(text)
		if err != nil || limit <= 0 {
			tb.Fatalf("SOAK is %q; want 1, or a duration such as 10m", text)
		}
		return true, limit
	}
}

// Rounds is how often a test goes around: few times, or as often as the fault tables
// ask for.
func Rounds(tb testing.TB, few, all int) int {
	tb.Helper()
	n := few
	if full, _ := Soak(tb); full {
		n = all
	}
	tb.Logf("%d rounds", n)
	return n
}

// Seed is another one each time, and printed.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	seed := rand.Uint64() >> 1
	tb.Logf("seed %d", seed)
	return seed
}

// Account prints what the test of a fault row did, for the table that
// internal/profiletest/faulttable writes: what was injected, and of the samples,
// records or requests how many were acknowledged, could be read at the end, and were
// counted as dropped. The table adds up the lines of a test's parts, in injected those
// written as "3 SIGKILL, 2 full disks". It asserts nothing.
func Account(tb testing.TB, injected string, acknowledged, readable, dropped int) {
	tb.Helper()
	tb.Logf("account: injected %q, acknowledged %d, readable %d, dropped %d", injected, acknowledged, readable, dropped)
}

// Injected prints, as Account, what a test did that has no acknowledged data to
// account for.
func Injected(tb testing.TB, what string) {
	tb.Helper()
	tb.Logf("account: injected %q", what)
}
