// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package filebench compares profiles_file with contrib's file exporter: output and speed. It holds
// tests only.
package filebench
