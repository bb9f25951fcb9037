// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package pprofreceiver is a collector receiver that turns pprof into OTLP
// profiles: what clients push over HTTP, what it scrapes, what it finds in files, and
// what it takes of the collector itself.
//
// It promises:
//
//   - What it answers with success has been accepted by the next component;
//     what it refuses, it refuses with a status that says whose fault it is and
//     a message that says where.
//   - Whatever arrives, memory stays bounded: each payload by
//     max_decompressed_size through all its layers of compression, all payloads
//     together by max_in_flight. Bad input never ends the process.
//   - A payload sent again gets the same profile ids, so that it can be
//     recognized; two resources never share one.
//   - Each resource has a service.name.
//   - One bad profile of a request loses no other.
//   - A scrape ends by its timeout, holds up no other, and takes no credential to
//     another host. What a target counts from its start is reported as the
//     difference from the scrape before, and never as one when there was none.
//   - Each finished file is read at least once, and noted as read when the next
//     component has accepted it.
package pprofreceiver
