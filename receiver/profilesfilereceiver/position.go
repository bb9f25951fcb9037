// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// positionEvery is how often a replay logs how far it is.
const positionEvery = 30 * time.Second

// position is how far a replay is.
type position struct {
	stop    chan struct{}
	running sync.WaitGroup

	mu     sync.Mutex
	path   string // of the record that was sent last, "" before the first
	record int
}

func (p *position) set(path string, record int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.path, p.record = path, record
}

// start calls log from time to time, until end.
func (p *position) start(log func()) {
	p.stop = make(chan struct{})
	p.running.Go(func() {
		ticker := time.NewTicker(positionEvery)
		defer ticker.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-ticker.C:
				log()
			}
		}
	})
}

// end waits until start calls log no more, if it was called.
func (p *position) end() {
	if p.stop == nil {
		return
	}
	close(p.stop)
	p.running.Wait()
	p.stop = nil
}

// logPosition says how far the replay is, unless nothing is left to read.
func (r *fileReceiver) logPosition() {
	left := r.watcher.Backlog()
	if left.Files == 0 {
		return
	}
	r.position.mu.Lock()
	path, record := r.position.path, r.position.record
	r.position.mu.Unlock()
	r.logger.Info("Replay goes on", append(r.telemetry.fields(),
		zap.String("path", path), zap.Int("record", record), zap.Int("waiting_files", left.Files), zap.Int64("waiting_bytes", left.Bytes))...)
}
