// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOutputGoesIntoPipes: named ones, and those that a shell opens for >(command).
func TestOutputGoesIntoPipes(t *testing.T) {
	input := filepath.Join(exampleDirectory(t), "cpu.pb.gz")
	named := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(named, 0o600))
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	for path, open := range map[string]func() (*os.File, error){
		named: func() (*os.File, error) { return os.Open(named) },
		"/dev/fd/" + strconv.Itoa(int(writer.Fd())): func() (*os.File, error) { return reader, nil },
	} {
		content := make(chan []byte)
		go func() {
			f, err := open()
			if assert.NoError(t, err) {
				got, _ := io.ReadAll(f)
				content <- got
			}
		}()
		succeed(t, "convert", "--format", "pprof", "-o", path, input)
		if path != named {
			require.NoError(t, writer.Close())
		}
		assert.NotEmpty(t, parse(t, <-content).Sample, path)
	}
	info, err := os.Lstat(named)
	require.NoError(t, err)
	assert.Equal(t, os.ModeNamedPipe, info.Mode().Type())
}
