// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build race

package profiletest

// RaceEnabled tells if the race detector is on, which takes much memory.
const RaceEnabled = true
