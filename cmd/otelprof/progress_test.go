// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
)

// openTerminal returns both ends of a pseudo-terminal: what is written to the terminal is read
// from the screen.
func openTerminal(t *testing.T) (screen, terminal *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = terminal.Close() })
	require.NoError(t, unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	return screen, terminal
}

// shown returns what is on the screen since the last call.
func shown(t *testing.T, screen, terminal *os.File) string {
	t.Helper()
	const end = "END"
	_, err := terminal.WriteString(end)
	require.NoError(t, err)
	var text bytes.Buffer
	for part := make([]byte, 1024); !bytes.HasSuffix(text.Bytes(), []byte(end)); {
		n, err := screen.Read(part)
		require.NoError(t, err)
		text.Write(part[:n])
	}
	return string(bytes.TrimSuffix(text.Bytes(), []byte(end)))
}

func TestProgressIsShownOnATerminalAfterASecond(t *testing.T) {
	screen, terminal := openTerminal(t)
	bar := &progress{terminal: terminal, after: time.Hour}
	stdout := new(bytes.Buffer)
	output := bar.removedFor(stdout)
	bar.start([]archive.File{{Size: 600}, {Size: 400}})
	bar.add(100)
	assert.Empty(t, shown(t, screen, terminal), "short work")

	bar.after = 0
	bar.add(200)
	assert.Contains(t, shown(t, screen, terminal), "30%")
	_, err := output.Write([]byte("a line"))
	require.NoError(t, err)
	assert.Equal(t, "a line", stdout.String())
	assert.Regexp(t, `^\r +\r$`, shown(t, screen, terminal), "removed before other output")
	bar.clear()
	assert.Empty(t, shown(t, screen, terminal), "removed once")
}

func TestProgressOfStandardInputHasNoEnd(t *testing.T) {
	screen, terminal := openTerminal(t)
	bar := &progress{terminal: terminal}
	bar.start([]archive.File{{Path: archive.Stdin}})
	bar.add(2048)
	bar.add(2048)
	text := shown(t, screen, terminal)
	assert.NotEmpty(t, text)
	assert.NotContains(t, text, "%")
}

func TestProgressIsNotShownInAPipe(t *testing.T) {
	from, to, err := os.Pipe()
	require.NoError(t, err)
	bar := &progress{terminal: to}
	bar.start([]archive.File{{Size: 100}})
	bar.add(50)
	bar.clear()
	require.NoError(t, to.Close())
	written := new(bytes.Buffer)
	_, err = written.ReadFrom(from)
	require.NoError(t, err)
	assert.Empty(t, written.String())
}

func TestLongWorkShowsProgressWhileItReads(t *testing.T) {
	screen, terminal := openTerminal(t)
	dir := exampleDirectory(t)
	_, want, _ := otelprof(t, "ls", dir)
	stdout := new(bytes.Buffer)
	a := newApp(stdout, terminal)
	a.bar.after = 0
	require.Equal(t, exitOK, a.run(t.Context(), []string{"ls", dir}))
	assert.Equal(t, want, stdout.String())
	text := shown(t, screen, terminal)
	assert.Contains(t, text, "%")
	assert.Regexp(t, `\r +\r$`, text, "it is removed at the end")
}
