// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// maxNames is how many services and how many senders an Ingester logs.
const maxNames = 1000

// names remembers the first maxNames names, in bounded memory.
type names struct {
	mu   sync.Mutex
	seen map[string]bool // shortened
}

// add reports whether a name is one of the first and is not in the set yet.
func (n *names) add(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	if name = shortened(name); n.seen[name] || len(n.seen) == maxNames {
		return false
	}
	n.seen[strings.Clone(name)] = true
	return true
}

// announce logs the first accepted profile of a service, and the first one of a sender that
// states no service.name.
func (in *Ingester) announce(r *Result, samples int) {
	if !in.settings.Announce {
		return
	}
	sender, service := zap.String("sender", r.payload.Sender), zap.String("service", shortened(r.service))
	if in.services.add(r.service) {
		in.settings.Logger.Info("Received the first profile of a service", service, sender, zap.Int("samples", samples),
			zap.String("time", r.start.AsTime().Format(time.RFC3339)))
	}
	if r.unnamed && in.unnamed.add(r.payload.Sender) {
		in.settings.Logger.Warn("Profile without service.name; not logged again for this sender", sender, service)
	}
}

// shortened is a name for logs: a client may send one of many KiB.
func shortened(name string) string {
	const most = 200
	return strings.ToValidUTF8(name[:min(len(name), most)], "")
}
