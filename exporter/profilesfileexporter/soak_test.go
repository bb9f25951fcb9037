// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"os"
	"testing"
	"time"
)

// soaking says whether tests are to run the full counts of the fault table: SOAK is
// set, to anything but "" and "0".
func soaking() bool {
	value := os.Getenv("SOAK")
	return value != "" && value != "0"
}

// rounds gives how often a test goes around: few times, or with SOAK all.
func rounds(t testing.TB, few, all int) int {
	n := few
	if soaking() {
		n = all
	}
	t.Logf("%d rounds", n)
	return n
}

// randomSeed gives a seed, and prints it.
func randomSeed(t testing.TB) uint64 {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return seed
}
