// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// dedupProcessor gathers payloads in a window and passes on full windows, one at
// a time and in order, from a goroutine of its own.
type dedupProcessor struct {
	cfg      *Config
	settings mergeSettings
	next     xconsumer.Profiles
	logger   *zap.Logger
	singles  sync.Pool // *importer, for payloads by themselves

	mu       sync.Mutex // guards what follows
	importer importer
	filling  *batch   // nil when nothing is in it
	waiting  []*batch // full, in order; the sender works on the first
	timer    *time.Timer
	overdue  bool // the filling window is to go as soon as no other waits
	stopping bool
	dropped  int // windows

	wake    chan struct{} // tells the sender that waiting or stopping changed
	hurry   chan struct{} // closed when shutdown has begun
	stopped chan struct{} // closed when the sender has ended
	cancel  context.CancelFunc
	sending context.Context
}

// batch is a window and those who wait for its outcome.
type batch struct {
	*window
	size int // bytes retained, when it was last measured
	// done is closed when the outcome, err, is known.
	done chan struct{}
	err  error
}

var (
	errFull     = errors.New("profiles_dedup: memory_limit is reached while earlier windows wait for the next component; send again later")
	errStopping = errors.New("profiles_dedup: it is shutting down")
)

func newDedupProcessor(logger *zap.Logger, cfg *Config, next xconsumer.Profiles) *dedupProcessor {
	p := &dedupProcessor{
		cfg: cfg, settings: cfg.mergeSettings(), next: next, logger: logger,
		singles: sync.Pool{New: func() any { return new(importer) }},
		wake:    make(chan struct{}, 1),
		hurry:   make(chan struct{}),
		stopped: make(chan struct{}),
	}
	p.sending, p.cancel = context.WithCancel(context.Background())
	return p
}

// Capabilities: what comes in is only read.
func (p *dedupProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// Start starts the sender.
func (p *dedupProcessor) Start(context.Context, component.Host) error {
	if p.cfg.Window == 0 {
		close(p.stopped)
		return nil
	}
	p.timer = time.AfterFunc(p.cfg.Window, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.overdue = len(p.waiting) > 0; !p.overdue {
			p.flush()
		}
	})
	p.timer.Stop()
	go p.send()
	return nil
}

// ConsumeProfiles merges pd, which it only reads. An error is permanent if pd
// itself is at fault. Without a window it returns what the next component says.
func (p *dedupProcessor) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	if p.cfg.Window == 0 {
		return p.consumeSingle(ctx, pd)
	}
	b, err := p.add(pd)
	if err != nil || p.cfg.Acknowledge == acknowledgeOnReceive {
		return err
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *dedupProcessor) consumeSingle(ctx context.Context, pd pprofile.Profiles) error {
	im := p.singles.Get().(*importer)
	w := newWindow(p.settings)
	err := im.add(w, pd)
	im.release()
	p.singles.Put(im)
	if err != nil {
		return consumererror.NewPermanent(err)
	}
	return p.next.ConsumeProfiles(ctx, w.profiles())
}

func (p *dedupProcessor) add(pd pprofile.Profiles) (*batch, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return nil, errStopping
	}
	half := int(p.cfg.MemoryLimit) / 2
	if p.filling != nil && p.filling.size >= half {
		if len(p.waiting) > 0 {
			return nil, errFull
		}
		p.flush()
	}
	b, err := p.addTo(p.filling, pd)
	if _, overflow := errors.AsType[*dictionary.OverflowError](err); overflow && p.filling != nil {
		if len(p.waiting) > 0 {
			return nil, errFull
		}
		p.flush()
		b, err = p.addTo(nil, pd)
	}
	if err != nil {
		return nil, consumererror.NewPermanent(err)
	}
	if p.filling == nil {
		p.filling = b
		p.timer.Reset(p.cfg.Window)
	}
	b.size = b.retained()
	if b.size >= half && len(p.waiting) == 0 {
		p.flush()
	}
	return b, nil
}

// addTo adds pd to b, or to a new batch if b is nil.
func (p *dedupProcessor) addTo(b *batch, pd pprofile.Profiles) (*batch, error) {
	if b == nil {
		b = &batch{window: newWindow(p.settings), done: make(chan struct{})}
	}
	defer p.importer.release()
	return b, p.importer.add(b.window, pd)
}

// flush hands the filling window to the sender. The caller holds mu.
func (p *dedupProcessor) flush() {
	if p.filling == nil {
		return
	}
	p.timer.Stop()
	p.waiting = append(p.waiting, p.filling)
	p.filling, p.overdue = nil, false
	p.wakeSender()
}

func (p *dedupProcessor) wakeSender() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// send passes on the waiting windows until the processor stops and none is left.
func (p *dedupProcessor) send() {
	defer close(p.stopped)
	for {
		p.mu.Lock()
		var b *batch
		if len(p.waiting) > 0 {
			b = p.waiting[0]
		}
		stopping := p.stopping
		p.mu.Unlock()
		if b == nil {
			if stopping {
				return
			}
			<-p.wake
			continue
		}
		b.err = p.deliver(b)
		close(b.done)
		p.mu.Lock()
		p.waiting[0] = nil
		p.waiting = p.waiting[1:]
		if p.overdue {
			p.flush()
		}
		p.mu.Unlock()
	}
}

// hurriedWait is how long a window waits between attempts during shutdown.
const hurriedWait = 200 * time.Millisecond

// deliver offers a window to the next component until it is accepted, refused
// for good, or given up. With on_flush nobody was told that the window is safe: its
// senders get the first error and send again, so that it is not offered again.
func (p *dedupProcessor) deliver(b *batch) error {
	retry := newRetries(p.cfg.RetryOnFailure)
	for {
		// Made anew for each attempt: the next component may have changed it.
		err := p.next.ConsumeProfiles(p.sending, b.profiles())
		if err == nil {
			return nil
		}
		if p.cfg.Acknowledge == acknowledgeOnFlush {
			p.logger.Warn("The next component did not accept a window; its senders are told so.", zap.Error(err))
			return err
		}
		wait, again := retry.next()
		switch {
		case isPermanent(err):
			p.drop(b, "the next component refused it for good", err)
			return err
		case !again:
			p.drop(b, "retry_on_failure has ended", err)
			return err
		case p.sending.Err() != nil:
			p.drop(b, "shutdown_timeout has passed", err)
			return err
		}
		p.logger.Warn("The next component did not accept a window; it is offered again.",
			zap.Error(err), zap.Duration("after", wait))
		p.wait(wait)
	}
}

// wait returns after d, or soon if shutdown has begun.
func (p *dedupProcessor) wait(d time.Duration) {
	select {
	case <-time.After(d):
		return
	case <-p.hurry:
	}
	select {
	case <-time.After(min(d, hurriedWait)):
	case <-p.sending.Done():
	}
}

// isPermanent takes an error that joins those of several components for permanent
// only if each of them is: one of them may only have asked to try again.
func isPermanent(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return consumererror.IsPermanent(err)
	}
	for _, e := range joined.Unwrap() {
		if !isPermanent(e) {
			return false
		}
	}
	return len(joined.Unwrap()) > 0
}

func (p *dedupProcessor) drop(b *batch, reason string, err error) {
	p.mu.Lock()
	p.dropped++
	p.mu.Unlock()
	p.logger.Error("A window was dropped.", zap.String("reason", reason), zap.Error(err),
		zap.Int("payloads", b.counts.payloads), zap.Int("profiles", b.counts.profiles), zap.Int("samples", b.counts.samples))
}

// Shutdown flushes what is left and waits until it is accepted, for at most
// shutdown_timeout or until ctx ends. The error says what had to be dropped.
func (p *dedupProcessor) Shutdown(ctx context.Context) error {
	p.mu.Lock()
	if p.stopping || p.cfg.Window == 0 || p.timer == nil {
		p.stopping = true
		p.mu.Unlock()
		p.cancel()
		return nil
	}
	p.stopping = true
	p.flush()
	before := p.dropped
	p.mu.Unlock()
	close(p.hurry)
	p.wakeSender()

	defer p.cancel()
	ctx, cancel := context.WithTimeout(ctx, p.cfg.ShutdownTimeout)
	defer cancel()
	select {
	case <-p.stopped:
	case <-ctx.Done():
		p.cancel()
		select {
		case <-p.stopped:
		case <-time.After(time.Second):
			return fmt.Errorf("profiles_dedup: the next component does not return within shutdown_timeout (%v)", p.cfg.ShutdownTimeout)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.dropped - before; n > 0 {
		return fmt.Errorf("profiles_dedup: %d windows were not accepted within shutdown_timeout (%v) and were dropped", n, p.cfg.ShutdownTimeout)
	}
	return nil
}
