// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go run -modfile=../../tools/go.mod ../../tools/protogen/main.go querierpb/querier.proto

// Package queryapi serves the methods of Pyroscope's querier.v1.QuerierService over profile files, with the Connect protocol in
// protobuf and JSON, so that Grafana's data source of Pyroscope and profilecli read them.
//
// Sums follow the rules of package query, as those of otelprof do: of snapshots, the last one of each resource counts.
package queryapi
