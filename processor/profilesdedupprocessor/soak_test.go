// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"math/rand/v2"
	"os"
	"testing"
)

// rounds is how often a test does what it does: a few times, or, where SOAK is set, as
// often as the table of faults asks for.
func rounds(few, full int) int {
	if os.Getenv("SOAK") != "" {
		return full
	}
	return few
}

// newSeed is another one each time; it is logged.
func newSeed(t testing.TB) uint64 {
	seed := rand.Uint64() >> 1
	t.Logf("seed %d", seed)
	return seed
}
