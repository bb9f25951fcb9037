// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// The program waits for a pipe longer than two seconds.
func TestProgressIsShownOnATerminal(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer master.Close()
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer terminal.Close()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	time.AfterFunc(progressAfter+progressEvery/2, func() {
		_, _ = writer.Write(profiletest.Pprof(t, cpuPprof(1e9)))
		_ = writer.Close()
	})
	var stdout bytes.Buffer
	require.Equal(t, exitOK, run(t.Context(), []string{"ls", fmt.Sprintf("/dev/fd/%d", reader.Fd())}, &stdout, terminal))
	require.NoError(t, reader.Close())
	assert.Contains(t, stdout.String(), "cpu")
	text := "otelprof: looking for files"
	want := text + "\r" + strings.Repeat(" ", len(text)) + "\r"
	shown := make([]byte, len(want))
	_, err = io.ReadFull(master, shown)
	require.NoError(t, err)
	assert.Equal(t, want, string(shown))
}
