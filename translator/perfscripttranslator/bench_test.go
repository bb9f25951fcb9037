// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscripttranslator_test

import (
	"math/rand/v2"
	"testing"

	"github.com/otelcol-profiles/otelcol-profiles/translator/perfscripttranslator"
)

func BenchmarkPerfScript(b *testing.B) {
	for name, text := range map[string]string{
		"switches": testdata(b, "sched.txt"),
		"random":   random(rand.New(rand.NewPCG(1, 2)), 10_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := (&perfscripttranslator.Unmarshaler{}).UnmarshalProfiles([]byte(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
