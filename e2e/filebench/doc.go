// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package filebench compares the exporter profiles_file with the file exporter of
// collector-contrib: what they write, and how fast. There is no code in it.
package filebench
