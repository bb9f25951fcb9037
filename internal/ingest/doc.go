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
//   - If Ingest returns nil, the next consumer has accepted the profile, or it held no
//     Profiles to pass on.
//   - A *PipelineError means that the next consumer rejected the profile.
//     ErrInFlightLimit is temporary. Other errors: that of ctx, or a payload that could
//     not be translated.
//   - The same payload with the same resource, scope and filled-in time range gets the
//     same profile IDs, so that a processor can drop duplicates. Two resources never
//     share an ID.
//   - Every resource has a service.name.
//   - A delta without a duration gets both its time and its duration from TimeRange;
//     otherwise only a missing time is filled in.
//
// InFlight bounds the bytes that all payloads hold at a time. ReadAll and Decompress
// draw on it.
package ingest
