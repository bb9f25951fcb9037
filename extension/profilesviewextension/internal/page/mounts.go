// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"slices"
	"sync"
)

// mounts are pprof's pages of the selections that were shown last.
type mounts struct {
	maxMemory int64

	mu     sync.Mutex
	held   []mount // the one that was used last comes last
	memory int64
}

type mount struct {
	key     string
	handler http.Handler
	size    int64
}

func (m *mounts) get(key string) http.Handler {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.held, func(held mount) bool { return held.key == key })
	if i < 0 {
		return nil
	}
	found := m.held[i]
	m.held = append(slices.Delete(m.held, i, i+1), found)
	return found.handler
}

// put keeps a handler, and drops those that were used least if all take too much memory.
func (m *mounts) put(key string, handler http.Handler, size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.held) > 0 && m.memory+size > m.maxMemory {
		m.memory -= m.held[0].size
		m.held = slices.Delete(m.held, 0, 1)
	}
	m.held = append(m.held, mount{key, handler, size})
	m.memory += size
}
