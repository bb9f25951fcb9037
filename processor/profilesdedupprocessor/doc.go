// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package profilesdedupprocessor merges the profiles that arrive within a window
// into one dictionary and one set of Profiles.
//
// It promises that sums per sample identity {stack, set of attributes, link} are
// those of what came in, that a refused payload changes nothing in the window,
// and that what it has acknowledged is passed on, at the latest at shutdown.
package profilesdedupprocessor
