// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkTrace shows a trace with so many spans in one record.
func BenchmarkTrace(b *testing.B) {
	for _, n := range []int{800, 8000} {
		s := newSite(b)
		var profiles []sent
		for i := range n {
			p := cpu("checkout", s.now.Add(-time.Minute), 1)
			p.trace, p.span = exampleTrace, fmt.Sprintf("%016x", i+1)
			profiles = append(profiles, p)
		}
		s.write(payload(b, profiles...))
		b.Run(fmt.Sprintf("spans/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.Contains(b, s.page("/trace/"+exampleTrace), "checkout")
			}
		})
	}
}
