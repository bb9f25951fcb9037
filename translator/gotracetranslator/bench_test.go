// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotracetranslator_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"golang.org/x/exp/trace"

	"github.com/otelcol-profiles/otelcol-profiles/translator/gotracetranslator"
)

// BenchmarkGoTrace compares the translation of a trace with the time in which golang.org/x/exp/trace only reads it. They take
// turns.
func BenchmarkGoTrace(b *testing.B) {
	data := record(b, func() { exchange(50_000) })
	b.SetBytes(int64(len(data)))
	var read, translated time.Duration
	for b.Loop() {
		start := time.Now()
		r, err := trace.NewReader(bytes.NewReader(data))
		for err == nil {
			_, err = r.ReadEvent()
		}
		if !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
		read += time.Since(start)
		start = time.Now()
		if _, err := (&gotracetranslator.Unmarshaler{}).UnmarshalProfiles(data); err != nil {
			b.Fatal(err)
		}
		translated += time.Since(start)
	}
	b.ReportMetric(float64(translated)/float64(read), "x-read")
}
