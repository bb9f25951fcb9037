// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"bytes"
	"testing"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

func FuzzSeries(f *testing.F) {
	var buf bytes.Buffer
	if err := profiletest.HeapPprof(1, 100, 1, 100).WriteUncompressed(&buf); err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes(), buf.Bytes())
	f.Fuzz(func(t *testing.T, a, b []byte) {
		s := heapSeries()
		for _, payload := range [][]byte{a, b} {
			step, err := s.Next(payload, time.Unix(1, 0))
			if err != nil {
				return
			}
			s.Accept(step)
			_, wholeErr := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(payload)
			for _, part := range step.Parts {
				if _, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(part.Payload); err != nil && wholeErr == nil {
					t.Fatalf("a part of what is valid is not: %v", err)
				}
			}
		}
	})
}
