// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package profcheck replaces a module that only a test of the eBPF profiler imports, and that
// not every module proxy has. Without it, `go mod tidy` fails for builder-config.yaml.
package profcheck
