// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The largest program, for linux/amd64, and the most memory that it may have without load: RSS, and
// the part of it that is not of the program's file. Raise the size only for a component that users
// of the default configuration need: others belong into a distribution of their own, such as
// config/node.
const (
	maxProgram = 45_500_000 // 110 % of the 41.3 MB of 0.1.0
	maxIdle    = 60 << 20
	maxOwn     = 30 << 20
)

// TestDistributionIsSmall measures the program with its default configuration, which profiles the
// Collector itself, after it has written a window of these profiles.
func TestDistributionIsSmall(t *testing.T) {
	info, err := os.Stat(program(t))
	require.NoError(t, err)
	c, _ := runDefaultConfig(t)
	c.await(t, "profiles of itself", func() bool {
		written := int64(0)
		_ = filepath.WalkDir(c.files, func(_ string, entry fs.DirEntry, err error) error { // missing at first
			if err == nil && entry.Type().IsRegular() {
				if info, err := entry.Info(); err == nil {
					written += info.Size()
				}
			}
			return nil
		})
		return written > 0
	})
	// RSS also has the pages of the program's file that it has touched, and their neighbours. How many
	// depends on the system, but they are not more than the file, so that the bound is stable.
	resident, own := memory(t, c.command.Process.Pid, "VmRSS:"), memory(t, c.command.Process.Pid, "RssAnon:")
	t.Logf("program: %.1f MB, RSS: %.1f MiB, of it its own: %.1f MiB", float64(info.Size())/1e6, float64(resident)/(1<<20), float64(own)/(1<<20))
	assert.LessOrEqual(t, info.Size(), int64(maxProgram), "bytes of the program")
	assert.LessOrEqual(t, resident, int64(maxIdle), "RSS of the idle program")
	assert.LessOrEqual(t, own, int64(maxOwn), "bytes of the idle program's own")
	c.stop(t)
}
