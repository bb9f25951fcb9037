// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package splunkprofilingconnector turns the log records in which Splunk's agents send
// profiles into OTLP profiles.
//
// It reads records of the scope otel.profiling, or with the attribute
// com.splunk.sourcetype: otel.profiling. Other records are counted and left alone: a user
// sends the logs to another pipeline as well.
//
// It promises:
//
//   - A record that cannot be read is rejected alone, counted by its outcome and logged with
//     its service. The others of the request are taken.
//   - ConsumeLogs returns nil only if the next consumer has accepted every record that can be
//     read. After a retryable error the client sends the request again: its profiles have the
//     same profile IDs then.
//   - Memory is counted against max_in_flight, as that of the pprof receiver.
package splunkprofilingconnector
