// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"sync"
)

// mounts are pprof's pages of the selections that were shown last.
type mounts struct {
	maxMemory int64

	mu     sync.Mutex
	held   map[string]*mount
	memory int64
	clock  int64
}

type mount struct {
	handler http.Handler
	size    int64
	used    int64
}

func (m *mounts) get(key string) http.Handler {
	m.mu.Lock()
	defer m.mu.Unlock()
	held := m.held[key]
	if held == nil {
		return nil
	}
	m.clock++
	held.used = m.clock
	return held.handler
}

// put keeps a handler, and drops those that were used least if all take too much memory.
func (m *mounts) put(key string, handler http.Handler, size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held == nil {
		m.held = map[string]*mount{}
	}
	for len(m.held) > 0 && m.memory+size > m.maxMemory {
		var oldest string
		for key, held := range m.held {
			if oldest == "" || held.used < m.held[oldest].used {
				oldest = key
			}
		}
		m.memory -= m.held[oldest].size
		delete(m.held, oldest)
	}
	m.clock++
	m.held[key] = &mount{handler, size, m.clock}
	m.memory += size
}
