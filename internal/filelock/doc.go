// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package filelock takes advisory locks of open files, by flock where the system has it.
package filelock
