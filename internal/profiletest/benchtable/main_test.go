// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFormat(t *testing.T) {
	in := strings.Join([]string{
		"goos: linux",
		"note: no corpus",
		"BenchmarkRetained/profile=average_Go,_long-2 \t 1\t 12345 otlp-B\t 0.0512 heap/otlp",
		"BenchmarkRetained/profile=b-2 \t 1\t 1.5 otlp-B\t 2 heap/otlp",
		"note: no corpus",
		"BenchmarkOther-2 \t 100\t 1234.5 ns/op\t 12 B/op",
		"--- BENCH: BenchmarkOther-2",
		"    some_test.go:7: what it logs",
		"--- FAIL: BenchmarkBad",
		"    some_test.go:8: why",
		"PASS",
		"ok  \texample.com/p\t1.0s",
	}, "\n")
	want := strings.Join([]string{
		"note: no corpus",
		"",
		"Retained by a window, against the OTLP bytes it writes; estimated as for memory_limit, and as the heap shows",
		"",
		"profile             otlp  estimate  heap     heap  heap/otlp  estimate/heap",
		"                       B         B     B  objects",
		"average Go, long  12,345         -     -        -      0.051              -",
		"b                   1.50         -     -        -       2.00              -",
		"--- FAIL: BenchmarkBad",
		"    some_test.go:8: why",
		"",
		"Other",
		"",
		"benchmark  ns/op  B/op",
		"",
		"Other      1,234    12",
	}, "\n")
	var out strings.Builder
	require.NoError(t, format(strings.NewReader(in), &out))
	require.Equal(t, want, strings.TrimSuffix(out.String(), "\n"))
}
