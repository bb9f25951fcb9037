// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package ingest passes payloads into a pipeline: pprof, JFR, execution traces of Go, the output of perf script and folded stacks. Every way to receive a profile
// (HTTP, scrape, file, the process itself) uses it.
//
// An Ingester takes a payload through these steps:
//
//  1. ReadAll reads the body within a lease of internal/ingest/budget, which all later bytes count in, too: what a step needs is taken
//     before it begins. The lease holds no work while it waits for some: Lease.Within repeats the next step then.
//  2. Batch.Translate decompresses the payloads of a request (decompress.go), estimates the work and takes it,
//     translates them (translate.go, jfr.go), and describes them with the sender's information: resource,
//     profile type, temporality, time, profile IDs (describe.go). The lease then keeps the results.
//     Batch.TranslateOne does so for one payload.
//  3. Pass calls the next consumer and returns its answer; PassAll does so for all payloads. It keeps no reference to the
//     Profiles, and frees their bytes.
//
// It promises:
//
//   - If Pass returns nil, the next consumer has accepted the profile, or it held no
//     Profiles to pass on. A Profile without samples covers its time with the value 0.
//   - A *PipelineError means that the next consumer rejected the profile, a *PanicError that a component panicked.
//     budget.ErrFull is temporary. Other errors: that of ctx, or a payload that could
//     not be translated. Outcome names them in metrics.
//   - The same payload with the same resource, scope, time and duration gets the same
//     profile IDs, so that a processor can drop duplicates. Two resources never share an
//     ID, nor do equal payloads of one request.
//   - Every resource has a service.name.
//   - Every Profile has a time. A missing one comes from the request, the first timestamp of
//     a sample, the file's last change, or the arrival minus the duration. A missing duration
//     comes from the timestamps or, of a delta, from the request. A time that a payload states is
//     kept, unless it is in 1970 or negative, and so is a duration above 0. All Profiles of a payload share both.
package ingest
