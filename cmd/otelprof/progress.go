// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
)

// progressAfter is how long work takes before it shows a progress bar.
const progressAfter = time.Second

// progress is a bar for the bytes of files that were read, if stderr is a terminal. Its methods
// may be called by several goroutines.
type progress struct {
	terminal io.Writer
	after    time.Duration

	mu      sync.Mutex
	bar     *progressbar.ProgressBar // nil without a terminal
	started time.Time
	total   int64 // bytes of all files
	read    int64
	shown   bool
}

// start adds files, before any is read.
func (p *progress) start(files []archive.File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok := p.terminal.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return
	}
	for _, file := range files {
		p.total += file.Size
	}
	shown := p.total
	if shown == 0 {
		shown = -1 // not known, as of standard input
	}
	p.started = time.Now()
	p.bar = progressbar.NewOptions64(shown, progressbar.OptionSetWriter(f), progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())
}

func (p *progress) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read += int64(n)
	if p.bar != nil && time.Since(p.started) >= p.after {
		p.shown = true
		_ = p.bar.Set64(p.read) // an error is that the terminal cannot be written
	}
}

// clear removes the bar from the terminal. The next add shows it again.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		p.shown = false
		_ = p.bar.Clear()
	}
}

// removedFor returns a writer that removes the bar before it writes to w.
func (p *progress) removedFor(w io.Writer) io.Writer {
	return writerFunc(func(data []byte) (int, error) {
		p.clear()
		return w.Write(data)
	})
}

type writerFunc func(data []byte) (int, error)

func (f writerFunc) Write(data []byte) (int, error) { return f(data) }
