// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
)

// dedupProcessor merges payloads in an open window and hands closed windows to its exporter. The
// package comment describes both.
type dedupProcessor struct {
	cfg       *Config
	options   *merge.Options
	next      xconsumer.Profiles
	logger    *zap.Logger
	telemetry *telemetry
	exporter  *exporter

	mu        sync.Mutex // guards the following
	seen      *seenProfiles
	open      *window       // nil if nothing is in it
	pending   []*window     // closed, in order; the exporter works on the first
	retrySize int           // bytes of the retry queue
	room      chan struct{} // closed when a window has been exported; nil unless payloads wait for it
	stopping  bool
}

func newDedupProcessor(set processor.Settings, cfg *Config, next xconsumer.Profiles) (*dedupProcessor, error) {
	telemetry, err := newTelemetry(set)
	if err != nil {
		return nil, err
	}
	p := &dedupProcessor{
		cfg: cfg, options: cfg.mergeOptions(), next: next, logger: set.Logger, telemetry: telemetry,
		seen: newSeenProfiles(cfg.DuplicateTTL, int(cfg.MemoryLimit)/8),
	}
	p.exporter = newExporter(p)
	return p, nil
}

// Capabilities says that payloads are only read.
func (p *dedupProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// Start starts the exporter, which a processor without a window does not need.
func (p *dedupProcessor) Start(context.Context, component.Host) error {
	if p.cfg.Window > 0 {
		p.exporter.start()
	}
	return nil
}

// ConsumeProfiles merges pd, which it only reads. An error is permanent if pd itself is
// invalid. Without a window it returns the answer of the next consumer.
func (p *dedupProcessor) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	bytes := sizeOf(pd)
	if p.cfg.Window > 0 { // before a part of it is copied
		if err := p.checkSize(bytes, maxRetained*bytes); err != nil {
			return p.reject(err)
		}
	}
	payload, err := p.prepare(pd)
	if err != nil {
		return p.reject(err)
	}
	if len(payload.Profiles) == 0 {
		return nil
	}
	if p.cfg.Window == 0 {
		defer payload.Release()
		return p.consumeImmediately(ctx, payload, bytes)
	}
	waits, err := p.addWhenRoom(ctx, payload, bytes)
	payload.Release() // the caller may wait long
	if err != nil {
		return p.reject(err)
	}
	return p.await(ctx, waits)
}

// Shutdown closes the open window and waits until everything is accepted, at most until
// shutdown_timeout or ctx ends. Then the exporter drops the rest. The error says what was dropped.
func (p *dedupProcessor) Shutdown(ctx context.Context) error {
	defer p.telemetry.shutdown()
	p.mu.Lock()
	p.stopping = true
	p.closeWindow(reasonShutdown)
	p.mu.Unlock()
	return p.exporter.shutdown(ctx, p.cfg.ShutdownTimeout)
}
