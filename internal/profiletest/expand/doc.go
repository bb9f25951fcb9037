// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package expand writes OTLP and pprof profiles out, without dictionaries, indices or ids, into one form, and
// compares them. It is for tests only.
//
//   - [Profiles], [Bytes] and [Pprof] write profiles out; [Build] is the inverse.
//   - [Normalize] takes out all that a comparison cannot hold equal, and [Diff] compares.
//
// It shares no code with internal/profiles/dictionary or the translator, and prefers slow and obvious over fast. OTLP is
// read through protobuf-go from the marshalled form, so that the written bytes count and not pdata's
// view of them.
package expand
