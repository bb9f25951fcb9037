// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	progressAfter = 2 * time.Second
	progressEvery = 500 * time.Millisecond
)

// progress shows on a terminal what a program that takes long has done. It is one line, which other output replaces.
type progress struct {
	terminal io.Writer
	text     func() string
	ended    chan struct{}

	mu      sync.Mutex
	stopped bool
	shown   int // characters of the line on the terminal
}

// startProgress shows text from progressAfter on, until stop.
func startProgress(terminal io.Writer, text func() string) *progress {
	p := &progress{terminal: terminal, text: text, ended: make(chan struct{})}
	go func() {
		for wait := progressAfter; ; wait = progressEvery {
			select {
			case <-p.ended:
				return
			case <-time.After(wait):
				p.show()
			}
		}
	}()
	return p
}

func (p *progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.replace(p.text())
}

// replace writes text over the line on the terminal. The cursor returns to its start.
func (p *progress) replace(text string) {
	padding := strings.Repeat(" ", max(0, p.shown-len(text)))
	_, _ = io.WriteString(p.terminal, text+padding+"\r") // it is for a person, who sees if it fails
	p.shown = len(text)
}

// stop erases the line, and shows no other. A nil progress shows none.
func (p *progress) stop() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.stopped = true
	close(p.ended)
	p.erase()
}

func (p *progress) erase() {
	if p.shown > 0 {
		p.replace("")
	}
}

// over returns a writer that erases the line before it writes to w, which may be the same terminal.
func (p *progress) over(w io.Writer) io.Writer { return &progressWriter{p, w} }

type progressWriter struct {
	progress *progress
	to       io.Writer
}

func (w *progressWriter) Write(data []byte) (int, error) {
	w.progress.mu.Lock()
	defer w.progress.mu.Unlock()
	w.progress.erase()
	return w.to.Write(data)
}

// isTerminal reports whether a person may look at what is written to w: a character device other than the null device.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&fs.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// progressText says how much was read.
func (a *app) progressText() string {
	read, total := a.read(), a.toRead.Load()
	switch {
	case total == 0 && read == 0:
		return "otelprof: looking for files"
	case total < read: // standard input, or files that are read again
		return fmt.Sprintf("otelprof: read %s", quantity(read, "bytes"))
	}
	return fmt.Sprintf("otelprof: read %s of %s", quantity(read, "bytes"), quantity(total, "bytes"))
}
