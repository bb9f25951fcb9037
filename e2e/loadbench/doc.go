// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package loadbench pushes profiles through the built program over loopback and measures it from
// outside. It holds benchmarks only.
package loadbench
