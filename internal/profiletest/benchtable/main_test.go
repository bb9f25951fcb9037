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
		"BenchmarkRetained/profile=average_Go,_long/4-2 \t 1\t 12345 otlp-B\t 0.05123 heap/otlp",
		"BenchmarkRetained/profile=b-2 \t 1\t 1.5 otlp-B\t 2 heap/otlp",
		"note: no corpus",
		"BenchmarkOther-2 \t 100\t 1234.5 ns/op\t 12 B/op",
		"--- BENCH: BenchmarkOther-2",
		"    some_test.go:7: a log line",
		"--- FAIL: BenchmarkBad",
		"    some_test.go:8: why",
		"PASS",
		"ok  \texample.com/p\t1.0s",
	}, "\n")
	want := []string{
		"note: no corpus",
		"",
		"Retained: Memory of a window, estimated and on the heap, compared with its OTLP output",
		"",
		"profile otlp-B estimate-B heap-B heap-objects heap/otlp estimate/heap",
		"average Go, long/4 12345 - - - 0.0512 -",
		"b 1.5 - - - 2 -",
		"--- FAIL: BenchmarkBad",
		"    some_test.go:8: why",
		"",
		"Other",
		"",
		"benchmark ns/op B/op",
		"Other 1234 12",
	}
	var out strings.Builder
	require.NoError(t, format(strings.NewReader(in), &out))
	var got []string
	for line := range strings.Lines(out.String()) {
		if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, "    some") {
			line = strings.Join(strings.Fields(line), " ")
		}
		got = append(got, line)
	}
	require.Equal(t, want, got)
}
