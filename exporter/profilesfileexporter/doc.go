// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package profilesfileexporter writes profiles as records into files of a directory.
//
// It promises that every acknowledged record can be read back, that a record is written
// completely or not at all, and that no existing file is truncated or overwritten.
package profilesfileexporter
