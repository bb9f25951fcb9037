// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package profilesdedupprocessor

// raceEnabled tells if the race detector is on, which takes much memory.
const raceEnabled = false
