// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package body reads the bodies of the log records in which Splunk's agents send profiles.
//
// Both forms become a pprof message that pproftranslator accepts: [Pprof] completes the
// message of a record, and a [Builder] collects call stacks that are text. The result has
// sample types and values, a time, a duration and a period, and these labels:
//
//	trace_id, span_id   padded with zeros to 32 and 16 digits (Python's agent leaves them out)
//	end_timestamp_ns    the time of the sample, instead of source.event.time
//
// Other labels stay. The formats are those of
// https://github.com/signalfx/gdi-specification (specification/profiling.md and
// semantic_conventions.md), and of the exporters of splunk-otel-java, -dotnet, -js and
// -python.
package body
