// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package pprofreceiver is a Collector receiver that translates pprof to OTLP profiles.
// It accepts pushes over HTTP, scrapes targets and profiles the Collector itself.
//
// It promises:
//
//   - A success response means that the next consumer has accepted the profiles. Any
//     other response says what is wrong and whether a retry can succeed.
//   - Memory is bounded for any input: each payload by max_decompressed_size, with
//     all its layers of compression, and all payloads by max_in_flight. Invalid input
//     never ends the process.
//   - A payload that is sent again gets the same profile IDs, so that a processor can
//     drop it, if it or its request states a time. Two resources never share an ID.
//   - Each resource has a service.name.
//   - An invalid profile does not affect the other profiles of its request.
//   - A scrape ends by its timeout, delays no other scrape, and sends no credentials to
//     another host. Cumulative values become deltas to the previous scrape; without one
//     there is no delta.
package pprofreceiver
