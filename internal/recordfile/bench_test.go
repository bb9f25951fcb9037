// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func BenchmarkAppend(b *testing.B) {
	for _, format := range allFormats {
		for _, size := range []int{1 << 10, 16 << 10, 512 << 10} {
			b.Run(fmt.Sprintf("format=%s/size=%d", formatName(format), size), func(b *testing.B) {
				w := openTestWriter(b, b.TempDir(), Options{Format: format, Rotation: Rotation{MaxSize: 64 << 20}})
				record := newRecord(format.Content, 1, size)
				b.SetBytes(int64(len(record)))
				b.ReportAllocs()
				for b.Loop() {
					require.NoError(b, w.Append(Record{Data: record}))
				}
				require.NoError(b, w.Close())
			})
		}
	}
}
