// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package load pushes pprof profiles to a receiver, as many clients do, and measures
// how fast they are answered.
package load
