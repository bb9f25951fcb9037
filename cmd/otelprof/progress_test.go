// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProgressIsShownAfterTwoSecondsAndReplacedByOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var terminal bytes.Buffer
		a := &app{}
		p := startProgress(&terminal, a.progressText)
		out := p.over(&terminal)
		took := func() string {
			synctest.Wait()
			p.mu.Lock() // as who writes to the terminal does
			defer p.mu.Unlock()
			text := terminal.String()
			terminal.Reset()
			return text
		}
		time.Sleep(progressAfter - time.Millisecond)
		assert.Empty(t, took())
		time.Sleep(time.Millisecond)
		assert.Equal(t, "otelprof: looking for files\r", took())
		a.stats.Bytes.Add(512)
		time.Sleep(progressEvery)
		assert.Equal(t, "otelprof: read 512 B       \r", took())
		a.toRead.Add(1536)
		time.Sleep(progressEvery)
		assert.Equal(t, "otelprof: read 512 B of 1.5 KiB\r", took())
		for range 2 {
			_, err := out.Write([]byte("row\n"))
			require.NoError(t, err)
		}
		assert.Equal(t, "                               \rrow\nrow\n", took())
		time.Sleep(progressEvery)
		assert.Equal(t, "otelprof: read 512 B of 1.5 KiB\r", took())
		p.stop()
		p.stop()
		assert.Equal(t, "                               \r", took())
		time.Sleep(time.Minute)
		_, err := out.Write([]byte("end\n"))
		require.NoError(t, err)
		assert.Equal(t, "end\n", took())
	})
}

func TestFilesPipesAndTheNullDeviceAreNoTerminals(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	for _, f := range []*os.File{file, null, reader, writer} {
		assert.False(t, isTerminal(f), f.Name())
		require.NoError(t, f.Close())
	}
	assert.False(t, isTerminal(&bytes.Buffer{}))
	assert.False(t, isTerminal(file), "closed")
}
