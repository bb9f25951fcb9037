// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package querierpb is the messages of querier.proto.
package querierpb

//go:generate go run -modfile=../../../../../internal/tools/go.mod generate.go querier.proto
