// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"sync"
	"time"
)

// handlerCount counts the handlers that run. Unlike a sync.WaitGroup it may be
// waited for while handlers still begin, and not for longer than wanted.
type handlerCount struct {
	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when running falls to 0; nil when nobody waits
}

func (h *handlerCount) enter() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running++
}

func (h *handlerCount) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running--
	if h.running == 0 && h.idle != nil {
		close(h.idle)
		h.idle = nil
	}
}

func (h *handlerCount) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running
}

// wait returns whether no handler runs, within limit. It is called once.
func (h *handlerCount) wait(limit time.Duration) bool {
	h.mu.Lock()
	if h.running == 0 {
		h.mu.Unlock()
		return true
	}
	idle := make(chan struct{})
	h.idle = idle
	h.mu.Unlock()

	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
		return false
	}
}
