// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package profilesfileexporter writes profiles as records into files of a
// directory, finished ones told from the one being written by their name.
//
// It promises that every record it has acknowledged can be read back, that a
// record is written whole or not at all, and that no existing file is ever
// truncated or overwritten.
package profilesfileexporter
