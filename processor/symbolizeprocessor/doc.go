// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package symbolizeprocessor gives functions, files and lines to native frames that have only addresses.
//
// internal/symbolize has the tables of symbols, and changes the payloads. The processor waits at most timeout for files
// that it searches for, then it passes the payload on as it is: it loses and rejects nothing.
package symbolizeprocessor
