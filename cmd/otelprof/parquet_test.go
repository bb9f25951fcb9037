// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/cmd/otelprof/internal/parquetfile"
)

func TestParquetHasARowForEachSelectedSample(t *testing.T) {
	dir := exampleDirectory(t)
	path := filepath.Join(dir, "profiles.parquet")
	succeed(t, "convert", "--format", "parquet", "-o", path, "--type", "cpu:cpu", filepath.Join(dir, "profiles"))
	rows, err := pq.ReadFile[parquetfile.Row](path)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	slices.SortFunc(rows, func(a, b parquetfile.Row) int { return int(a.Time - b.Time) })
	for i, value := range []int64{4e9, 2e9} {
		row := rows[i]
		assert.WithinDuration(t, time.Now().Add([]time.Duration{-90 * time.Minute, -30 * time.Minute}[i]), time.UnixMicro(row.Time), time.Minute)
		assert.Equal(t, []any{"cpu", false, value}, []any{row.Type, row.Snapshot, row.Value})
	}

	succeed(t, "convert", "--format", "parquet", "-o", path, "--type", "inuse_space", filepath.Join(dir, "profiles"))
	rows, err = pq.ReadFile[parquetfile.Row](path)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	assert.True(t, rows[0].Snapshot)
}

func TestOutputReplacesAFileOnlyWhenItIsComplete(t *testing.T) {
	dir := exampleDirectory(t)
	damaged := filepath.Join(dir, "damaged.otlp.pb")
	require.NoError(t, os.WriteFile(damaged, []byte("\x0a\xff\xff\xff\xff\x7f"), 0o600))
	link, target := filepath.Join(dir, "link"), filepath.Join(dir, "target")
	require.NoError(t, os.WriteFile(target, []byte("before"), 0o600))
	require.NoError(t, os.Symlink(target, link))
	for _, format := range []string{"parquet", "pprof"} {
		code, _, _ := otelprof(t, "convert", "--strict", "--format", format, "-o", link, filepath.Join(dir, "cpu.pb.gz"), damaged)
		assert.Equal(t, exitWrong, code)
		content, err := os.ReadFile(target)
		require.NoError(t, err)
		assert.Equal(t, "before", string(content))
	}
	succeed(t, "convert", "--format", "parquet", "-o", link, filepath.Join(dir, "cpu.pb.gz"))
	rows, err := pq.ReadFile[parquetfile.Row](target)
	require.NoError(t, err)
	assert.Len(t, rows, 2)
	left, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
	require.NoError(t, err)
	assert.Empty(t, left)
	succeed(t, "convert", "--format", "parquet", "-o", os.DevNull, filepath.Join(dir, "cpu.pb.gz"))
	info, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	assert.False(t, info.Mode().IsRegular())
}
