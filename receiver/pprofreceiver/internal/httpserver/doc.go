// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package httpserver receives pushed profiles over HTTP. Each Protocol reads profiles
// from the requests to one path: plain pprof, the two of Pyroscope's clients, and that of
// Datadog's. The server does the rest for all of them: limits, decompression, ingest,
// responses and metrics.
//
// It promises:
//
//   - A response of success means that the next consumer has accepted every profile of
//     the request.
//   - A client is told to retry (429, 503) only if the request can succeed later.
//   - An invalid profile does not affect the other profiles of its request.
//   - Memory is bounded for any input: each request by max_decompressed_size, all
//     requests together by max_in_flight. A slow client holds only the memory of the bytes it has sent.
//   - A panic is answered with 500 and affects no other request.
//   - Secrets in queries and headers appear in no log, response or metric.
package httpserver
