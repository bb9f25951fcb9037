// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestOversize_E13: records larger than a file may be, among small ones, of one group
// and of others at the same time.
func TestOversize_E13(t *testing.T) {
	const maxSize, small, large, groups = 8 << 10, 100, 100 << 10, 4
	perGroup := profiletest.Rounds(t, 50, 2000)
	for _, format := range []Format{allFormats[0], allFormats[2], allFormats[3]} {
		t.Run(formatName(format), func(t *testing.T) {
			dir := t.TempDir()
			s := openTestWriter(t, dir, Options{Format: format, Rotation: Rotation{MaxSize: maxSize}, Levels: 1, MaxOpen: 4})
			var writers sync.WaitGroup
			for g := range groups {
				writers.Go(func() {
					for i := range perGroup {
						size := small
						if i%10 == 3 {
							size = large
						}
						assert.NoError(t, s.Append(plainRecord(format.Content, g*perGroup+i+1, size, fmt.Sprint(g))))
					}
				})
			}
			writers.Wait()
			require.NoError(t, s.Close())

			seen := map[int]bool{}
			for g := range groups {
				for _, name := range list(t, filepath.Join(dir, fmt.Sprint(g))) {
					path := filepath.Join(dir, fmt.Sprint(g), name)
					info, err := os.Stat(path)
					require.NoError(t, err)
					ids := idsOf(t, path, format.Content)
					for _, id := range ids {
						assert.False(t, seen[id], "record %d is there twice", id)
						seen[id] = true
					}
					if info.Size() > maxSize {
						assert.Len(t, ids, 1, "%s is of %d bytes", name, info.Size())
					}
				}
			}
			assert.Len(t, seen, groups*perGroup)
			profiletest.Account(t, fmt.Sprintf("%d records of %d bytes for files of %d", groups*perGroup/10, large, maxSize), groups*perGroup, len(seen), 0)
		})
	}
}
