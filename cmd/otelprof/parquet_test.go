// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/lake"
)

func TestParquetHasARowForEachSelectedSample(t *testing.T) {
	dir := exampleDirectory(t)
	path := filepath.Join(dir, "profiles.parquet")
	succeed(t, "convert", "--format", "parquet", "-o", path, "--type", "cpu:cpu", filepath.Join(dir, "profiles"))
	rows, err := pq.ReadFile[lake.Sample](path)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	slices.SortFunc(rows, func(a, b lake.Sample) int { return int(a.Time - b.Time) })
	for i, value := range []int64{4e9, 2e9} {
		row := rows[i]
		assert.WithinDuration(t, time.Now().Add([]time.Duration{-90 * time.Minute, -30 * time.Minute}[i]), time.UnixMicro(row.Time), time.Minute)
		assert.Equal(t, []any{"cpu", false, value}, []any{row.Type, row.Snapshot, row.Value})
	}

	succeed(t, "convert", "--format", "parquet", "-o", path, "--type", "inuse_space", filepath.Join(dir, "profiles"))
	rows, err = pq.ReadFile[lake.Sample](path)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	assert.True(t, rows[0].Snapshot)
}

func TestOutputReplacesAFileOnlyWhenItIsComplete(t *testing.T) {
	dir := exampleDirectory(t)
	damaged := filepath.Join(dir, "damaged.otlp.pb")
	require.NoError(t, os.WriteFile(damaged, []byte("\x0a\xff\xff\xff\xff\x7f"), 0o600))
	target := filepath.Join(dir, "target")
	require.NoError(t, os.WriteFile(target, []byte("before"), 0o600))
	for _, format := range []string{"parquet", "pprof"} {
		code, _, _ := otelprof(t, "convert", "--strict", "--format", format, "-o", target, filepath.Join(dir, "cpu.pb.gz"), damaged)
		assert.Equal(t, exitWrong, code)
		content, err := os.ReadFile(target)
		require.NoError(t, err)
		assert.Equal(t, "before", string(content))
	}
	succeed(t, "convert", "--format", "parquet", "-o", target, filepath.Join(dir, "cpu.pb.gz"))
	rows, err := pq.ReadFile[lake.Sample](target)
	require.NoError(t, err)
	assert.Len(t, rows, 2)
	left, err := filepath.Glob(filepath.Join(dir, ".*.tmp"))
	require.NoError(t, err)
	assert.Empty(t, left)
	succeed(t, "convert", "--format", "parquet", "-o", os.DevNull, filepath.Join(dir, "cpu.pb.gz"))
	info, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	assert.False(t, info.Mode().IsRegular())
}

// TestOutputIsReadByItsOwnerOnly: a link that somebody else has put at the name is not followed.
func TestOutputIsReadByItsOwnerOnly(t *testing.T) {
	dir := exampleDirectory(t)
	input, own := filepath.Join(dir, "cpu.pb.gz"), t.TempDir()
	for name, args := range map[string][]string{
		"pprof": {"convert", "--format", "pprof"}, "parquet": {"convert", "--format", "parquet"}, "pgo": {"pgo"},
	} {
		path, target := filepath.Join(own, name), filepath.Join(own, name+".target")
		profiletest.WriteAt(t, target, []byte("before"), time.Now())
		require.NoError(t, os.Symlink(target, path))
		for range 2 { // the first replaces a link, the second a file that all may read
			succeed(t, append(args, "-o", path, input)...)
			info, err := os.Lstat(path)
			require.NoError(t, err)
			assert.True(t, info.Mode().IsRegular(), name)
			if runtime.GOOS != "windows" {
				assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), name)
			}
			assert.Positive(t, info.Size(), name)
			require.NoError(t, os.Chmod(path, 0o644)) // #nosec G302 -- the test needs it
		}
		content, err := os.ReadFile(target)
		require.NoError(t, err)
		assert.Equal(t, "before", string(content), name)
	}
	assert.NotEmpty(t, succeed(t, "convert", "--format", "pprof", "-o", "/dev/stdout", input))
	code, _, stderr := otelprof(t, "convert", "--format", "pprof", "-o", own, input)
	assert.Equal(t, exitWrong, code, "a directory")
	assert.NotEmpty(t, stderr)
}
