// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package otlpsize estimates the memory that a message of OTLP profiles takes in pdata, before pdata
// decodes it. A message of tiny entries takes over 60 times its size, and pdata decodes nested values by
// recursion without a bound.
package otlpsize
