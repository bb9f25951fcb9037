// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
)

// dedupProcessor merges payloads in an open window, which a goroutine exports. The package comment
// describes both.
type dedupProcessor struct {
	cfg       *Config
	options   *merge.Options
	next      xconsumer.Profiles
	logger    *zap.Logger
	telemetry *telemetry

	wake    chan struct{} // signals the goroutine that there may be something to export
	stopped chan struct{} // closed when the goroutine has ended; nil unless it was started
	ctx     context.Context
	cancel  context.CancelFunc // ends the time for shutdown

	mu        sync.Mutex // guards the following
	seen      *seenProfiles
	open      *window      // nil if nothing is in it
	exporting *window      // closed, until each of its partitions has been sent once
	retries   []*partition // sent in vain; the one that is due first comes first
	retrySize int          // bytes of retries, and of the one being sent
	stopping  bool
	lost      int // acknowledged partitions that were dropped during shutdown
}

func newDedupProcessor(set processor.Settings, cfg *Config, next xconsumer.Profiles) (*dedupProcessor, error) {
	p := &dedupProcessor{
		cfg: cfg, options: cfg.mergeOptions(), next: next, logger: set.Logger,
		wake: make(chan struct{}, 1), seen: newSeenProfiles(cfg.DuplicateTTL, int(cfg.MemoryLimit)/8),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	var err error
	p.telemetry, err = newTelemetry(set, p.retained)
	return p, err
}

// Capabilities says that payloads are only read.
func (p *dedupProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// Start starts the goroutine that exports windows, which a processor without a window does not need.
func (p *dedupProcessor) Start(context.Context, component.Host) error {
	if p.cfg.Window > 0 {
		p.stopped = make(chan struct{})
		go p.exportAll()
	}
	return nil
}

// patience is how long a canceled call of the next consumer may take without a warning and, if the
// Collector's shutdown deadline has passed, at all.
const patience = time.Second

// Shutdown closes the open window and waits until everything is accepted, at most until
// shutdown_timeout or ctx ends. Then it cancels the call of the next consumer, and the rest is dropped:
// the error says how much. With a window, it does not return before the next consumer has, unless ctx ends: the
// Collector shuts down the next consumer after it.
func (p *dedupProcessor) Shutdown(ctx context.Context) error {
	defer p.telemetry.Shutdown()
	defer p.cancel()
	p.mu.Lock()
	p.stopping = true
	for _, part := range p.retries {
		part.due = time.Now()
	}
	p.mu.Unlock()
	if p.stopped == nil {
		return nil
	}
	p.wakeUp()

	limit := fmt.Sprintf("shutdown_timeout (%v)", p.cfg.ShutdownTimeout)
	limited, cancel := context.WithTimeout(ctx, p.cfg.ShutdownTimeout)
	defer cancel()
	select {
	case <-p.stopped:
	case <-limited.Done():
		if ctx.Err() != nil {
			limit = "the Collector's shutdown deadline"
		}
		p.cancel()
		select {
		case <-p.stopped:
		case <-time.After(patience):
			p.logger.Warn("Waiting for the next consumer to return")
			select {
			case <-p.stopped:
			case <-ctx.Done():
				return fmt.Errorf("profiles_dedup: next consumer did not return within %s and is still running", limit)
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost > 0 {
		return fmt.Errorf("profiles_dedup: dropped %d payloads that the next consumer did not accept within %s", p.lost, limit)
	}
	return nil
}
