// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package ingest passes pprof payloads into a pipeline. Every way to receive a profile
// (HTTP, scrape, file, the process itself) uses it.
//
// An Ingester translates a payload, adds what the sender says about it (resource,
// profile type, temporality, time), sets the profile IDs and calls the next consumer.
//
// It promises:
//
//   - If Ingest returns nil, the next consumer has accepted the profile.
//   - A *PipelineError means that the next consumer rejected the profile.
//     ErrInFlightLimit is temporary. Any other error is the sender's fault.
//   - The same payload with the same resource and scope gets the same profile IDs, so
//     that a processor can drop duplicates. Two resources never share an ID.
//   - Every resource has a service.name.
//   - The times in a payload stay as they are. Only missing ones are filled in.
//
// InFlight bounds the bytes that all payloads hold at a time. ReadAll and Decompress
// draw on it.
package ingest
