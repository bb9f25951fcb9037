// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package timeline puts the samples with timestamps of decoded payloads on a time axis: as a heatmap of columns of time and the offset within
// each, whose cells can be selected; as lanes of threads, goroutines or processes with their states; and as the spans of a trace.
//
// It reads no files. A payload has passed query.Resolve, so that all indices are valid and all strings show. What a builder keeps is
// bounded by its grid, its slots and its limits, whatever timestamps a payload has; each builder reads a payload once, in any order.
//
// # Extent of a sample
//
// An attribute says what a timestamp marks. At the start or the end of an interval, the value beside the timestamp is its length. An instant on a CPU
// stands for one period, which ends at the timestamp: a sampler fires when the period has passed. All other instants have no
// length. An interval is cut at the edges of its Profile.
package timeline
