// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package profilesdedupprocessor merges the profiles that arrive within a window into one
// payload with one dictionary, by the rules of internal/merge.
//
// It promises that a rejected payload leaves the window unchanged, and that an acknowledged
// payload is sent, at the latest during shutdown, or counted as dropped.
package profilesdedupprocessor
