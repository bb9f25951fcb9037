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

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/repeatlog"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
)

// dedupProcessor merges payloads in an open window, and sends the partitions of closed ones. The package comment
// describes both.
type dedupProcessor struct {
	cfg       *Config
	options   *merge.Options
	next      xconsumer.Profiles
	logger    *zap.Logger
	telemetry *telemetry
	trouble   *repeatlog.Reporter

	draining chan struct{} // closed when shutdown begins
	ctx      context.Context
	cancel   context.CancelFunc // ends the time for shutdown
	sending  sync.WaitGroup     // the goroutines of partitions

	mu        sync.Mutex // guards the following
	seen      *seenProfiles
	open      *openWindow // nil if nothing is in it
	admission *admission
	throttled map[string]time.Time // until when no partition with a key is sent
	stopping  bool                 // shutdown has begun
	lost      int                  // acknowledged partitions that were dropped during shutdown
}

func newDedupProcessor(set processor.Settings, cfg *Config, next xconsumer.Profiles) (*dedupProcessor, error) {
	seen := newSeenProfiles(cfg.DuplicateTTL, int(cfg.MemoryLimit)/8)
	p := &dedupProcessor{
		cfg: cfg, options: cfg.mergeOptions(), next: next, logger: set.Logger, trouble: repeatlog.New(set.Logger),
		draining: make(chan struct{}), seen: seen, throttled: map[string]time.Time{},
		admission: &admission{limit: int(cfg.MemoryLimit) - seen.limit, places: cfg.NumConsumers},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	var err error
	p.telemetry, err = newTelemetry(set, p.retained)
	return p, err
}

// retained returns the bytes that memory_limit bounds, an estimate.
func (p *dedupProcessor) retained() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(p.seen.size() + p.admission.retained())
}

// Capabilities says that payloads are only read.
func (p *dedupProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// Start keeps the host, to which it reports whether the next consumer accepts payloads.
func (p *dedupProcessor) Start(_ context.Context, host component.Host) error {
	p.trouble.Start(host)
	return nil
}

// patience is how long a canceled call of the next consumer may take without a warning and, if the
// Collector's shutdown deadline has passed, at all.
const patience = time.Second

// Shutdown closes the open window and waits until everything is accepted, at most until
// shutdown_timeout or ctx ends. Then it cancels the calls of the next consumer, and the rest is dropped:
// the error says how much. With a window, it does not return before the next consumer has, unless ctx ends: the
// Collector shuts down the next consumer after it.
func (p *dedupProcessor) Shutdown(ctx context.Context) error {
	defer p.telemetry.Shutdown()
	defer p.cancel()
	p.drain()
	stopped := make(chan struct{})
	go func() {
		p.sending.Wait()
		close(stopped)
	}()

	limit := fmt.Sprintf("shutdown_timeout (%v)", p.cfg.ShutdownTimeout)
	limited, cancel := context.WithTimeout(ctx, p.cfg.ShutdownTimeout)
	defer cancel()
	select {
	case <-stopped:
	case <-limited.Done():
		if ctx.Err() != nil {
			limit = "the Collector's shutdown deadline"
		}
		p.cancel()
		select {
		case <-stopped:
		case <-time.After(patience):
			p.logger.Warn("Waiting for the next consumer to return")
			select {
			case <-stopped:
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

// drain begins the shutdown: nothing is received any more, the open window is closed, and all waits end.
func (p *dedupProcessor) drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return
	}
	p.stopping, p.admission.stopping = true, true
	clear(p.throttled)
	close(p.draining)
	p.closeIfDue()
	p.admission.grant()
}
