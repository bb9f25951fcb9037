// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package ingest passes pprof payloads into a pipeline. Every way to receive a profile
// (HTTP, scrape, file, the process itself) uses it.
//
// An Ingester translates a payload, adds the sender's information about it (resource,
// profile type, temporality, time), sets the profile IDs and calls the next consumer.
//
// It promises:
//
//   - If Ingest returns nil, the next consumer has accepted the profile, or it held no
//     Profiles to pass on. Profiles without samples are left out and counted.
//   - A *PipelineError means that the next consumer rejected the profile.
//     ErrInFlightLimit is temporary. Other errors: that of ctx, or a payload that could
//     not be translated.
//   - The same payload with the same resource, scope, time and duration gets the same
//     profile IDs, so that a processor can drop duplicates. Two resources never share an
//     ID, nor do equal payloads of one request.
//   - Every resource has a service.name.
//   - Every Profile has a time. A missing one comes from the request, the first timestamp of
//     a sample, the file's last change, or the arrival minus the duration. A missing duration
//     comes from the timestamps or, of a delta, from the request. The time and the duration
//     of a payload never change, and all its Profiles share them.
//
// InFlight bounds the memory of all payloads, from the first byte of a body until the
// next consumer has answered.
package ingest
