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

// progress is a bar on a terminal for the bytes of files that were read. Its methods may be called by
// several goroutines.
type progress struct {
	mu      sync.Mutex
	started time.Time
	bar     *progressbar.ProgressBar // nil without a terminal
	shown   bool
	read    int64
}

func newProgress(w io.Writer, files []archive.File) *progress {
	p := &progress{started: time.Now()}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return p
	}
	total := int64(0)
	for _, file := range files {
		total += file.Size
	}
	if total == 0 {
		total = -1 // not known, as of standard input
	}
	p.bar = progressbar.NewOptions64(total, progressbar.OptionSetWriter(w), progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())
	return p
}

func (p *progress) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read += int64(n)
	if p.bar == nil || !p.shown && time.Since(p.started) < progressAfter {
		return
	}
	p.shown = true
	_ = p.bar.Set64(p.read) // an error is that the terminal cannot be written
}

// clear removes the bar, before other output.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil && p.shown {
		_ = p.bar.Clear()
	}
}
