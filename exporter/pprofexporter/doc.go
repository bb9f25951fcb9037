// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package pprofexporter sends profiles to servers that take pprof, as their own clients do.
//
// A payload becomes one pprof for each resource, scope and profile type, with a sample type for each
// of its Profiles (prepare.go, series.go). Each pprof is sent in a request of its own (http.go, grpc.go), because servers
// answer for a request as a whole. So an answer concerns one pprof: what was taken is not sent again, what was
// rejected is counted and logged, and a retryable error carries the Profiles of all others (exporter.go).
package pprofexporter
