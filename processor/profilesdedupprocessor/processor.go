// Copyright The otelcol-profiles Authors
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
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// dedupProcessor gathers payloads in a window and passes on full windows, one at
// a time and in order, from a goroutine of its own.
type dedupProcessor struct {
	cfg       *Config
	settings  mergeSettings
	next      xconsumer.Profiles
	logger    *zap.Logger
	telemetry *telemetry
	intake    *intake
	singles   sync.Pool // *importer, for payloads by themselves

	mu       sync.Mutex // guards what follows
	repeats  *repeats
	importer importer
	filling  *batch   // nil when nothing is in it
	waiting  []*batch // full, in order; the sender works on the first
	held     int      // bytes of what is to be offered again
	timer    *time.Timer
	overdue  bool // the filling window is to go as soon as no other waits
	stopping bool
	dropped  int // partitions that had been acknowledged, because the time of the shutdown was over

	wake    chan struct{} // tells the sender that waiting or stopping changed
	left    chan struct{} // tells the sender that nobody waits any more for a partition
	hurry   chan struct{} // closed when shutdown has begun
	stopped chan struct{} // closed when the sender has ended
	cancel  context.CancelFunc
	sending context.Context
}

var (
	errFull     = errors.New("profiles_dedup: memory_limit is reached while earlier windows wait for the next component; send again later")
	errStopping = errors.New("profiles_dedup: it is shutting down")
)

func newDedupProcessor(set processor.Settings, cfg *Config, next xconsumer.Profiles) (*dedupProcessor, error) {
	telemetry, err := newTelemetry(set)
	if err != nil {
		return nil, err
	}
	p := &dedupProcessor{
		cfg: cfg, settings: cfg.mergeSettings(), next: next, logger: set.Logger, telemetry: telemetry,
		singles: sync.Pool{New: func() any { return new(importer) }},
		repeats: newRepeats(cfg.RepeatHorizon, int(cfg.MemoryLimit)/8),
		wake:    make(chan struct{}, 1),
		left:    make(chan struct{}, 1),
		hurry:   make(chan struct{}),
		stopped: make(chan struct{}),
	}
	p.intake = newIntake(&p.settings, cfg.RepeatHorizon > 0)
	p.sending, p.cancel = context.WithCancel(context.Background())
	return p, nil
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
		p.overdue = p.filling != nil
		p.flushOverdue()
	})
	p.timer.Stop()
	go (&sender{dedupProcessor: p, lanes: map[string]*lane{}}).run()
	return nil
}

// ConsumeProfiles merges pd, which it only reads. An error is permanent if pd
// itself is at fault. Without a window it returns what the next component says.
func (p *dedupProcessor) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	in, err := p.intake.read(pd)
	if err != nil {
		p.telemetry.refused(reasonInvalid)
		return consumererror.NewPermanent(err)
	}
	if len(in.profiles) == 0 {
		p.intake.release(in)
		return nil
	}
	if p.cfg.Window == 0 {
		defer p.intake.release(in)
		return p.consumeSingle(ctx, in)
	}
	waits, err := p.add(in)
	p.intake.release(in) // who waits does not keep the payload
	if err != nil {
		return err
	}
	return p.await(ctx, waits)
}

// await returns the outcome of all of waits, which counts the caller among their
// waiters, or the error of ctx.
func (p *dedupProcessor) await(ctx context.Context, waits []*partition) error {
	defer p.leave(waits)
	var err error
	for _, part := range waits {
		select {
		case <-part.done:
			err = worse(err, part.err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// worse is the error to answer with where there are two: one that asks to send again,
// so that nothing is lost.
func worse(a, b error) error {
	if a == nil || b != nil && isPermanent(a) {
		return b
	}
	return a
}

func (p *dedupProcessor) leave(waits []*partition) {
	if len(waits) == 0 {
		return
	}
	p.mu.Lock()
	for _, part := range waits {
		part.waiters--
	}
	p.mu.Unlock()
	select {
	case p.left <- struct{}{}:
	default:
	}
}

// add takes in a payload and returns what its caller is to wait for.
func (p *dedupProcessor) add(in *incoming) (waits []*partition, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.measure()
	defer p.flushOverdue() // there may be room again, as known ids are forgotten
	if p.stopping {
		p.telemetry.refused(reasonShutdown)
		return nil, errStopping
	}
	outcomes, marked := p.repeats.mark(in.profiles)
	if marked < len(in.profiles) {
		touched, err := p.addNew(in)
		switch {
		case errors.Is(err, errFull):
			p.telemetry.refused(reasonMemory)
			return nil, err
		case err != nil:
			p.telemetry.refused(reasonInvalid)
			return nil, consumererror.NewPermanent(err)
		}
		if p.cfg.Acknowledge == acknowledgeOnFlush {
			for _, part := range touched {
				outcomes.add(part)
			}
		}
	}
	p.telemetry.accepted(in)
	for _, part := range outcomes.all {
		part.waiters++
	}
	return outcomes.all, nil
}

// addNew merges what of in is no repeat into the filling window, and returns the
// partitions that it went into. The caller holds mu.
func (p *dedupProcessor) addNew(in *incoming) (touched []*partition, err error) {
	full := p.full()
	if p.filling != nil && p.filling.size >= full && !p.flushIfFree(reasonMemory) {
		return nil, errFull
	}
	b, keys, err := p.addTo(p.filling, in)
	if _, overflow := errors.AsType[*dictionary.OverflowError](err); overflow && p.filling != nil {
		if !p.flushIfFree(reasonOverflow) {
			return nil, errFull
		}
		b, keys, err = p.addTo(nil, in)
	}
	if err != nil {
		return nil, err
	}
	if p.filling == nil {
		p.filling = b
		p.timer.Reset(p.cfg.Window)
	}
	for _, key := range keys {
		touched = append(touched, b.partition(key))
	}
	p.note(b, in)
	b.sizes = b.sizes.Plus(in.sizes)
	b.size = b.retained() + b.idsSize
	if b.size >= full {
		p.flushIfFree(reasonMemory)
	}
	return touched, nil
}

// full is the size, in bytes, at which a window is flushed early: a third of what the
// known ids and what is held leave of memory_limit, for it, the one before it, and what is
// made of that one while it is passed on. The caller holds mu.
func (p *dedupProcessor) full() int {
	return (int(p.cfg.MemoryLimit) - p.repeats.retained() - p.held) / 3
}

// hasRoom tells whether a window may be passed on, of which all may have to be held: with
// split_by until as much is held as a window may have, without it until anything is. The
// caller holds mu.
func (p *dedupProcessor) hasRoom() bool {
	return p.held == 0 || len(p.settings.splitBy) > 0 && p.held < p.full()
}

// isFree tells whether the sender would take a window now. The caller holds mu.
func (p *dedupProcessor) isFree() bool { return len(p.waiting) == 0 && p.hasRoom() }

// addTo adds in to b, or to a new batch if b is nil. It returns the batch and the keys of
// the partitions that in went into.
func (p *dedupProcessor) addTo(b *batch, in *incoming) (*batch, []string, error) {
	if b == nil {
		b = newBatch(p.settings)
	}
	defer p.importer.release()
	before := b.counts.superseded
	touched, err := p.importer.merge(b.window, in.pd, in.repeated())
	p.telemetry.superseded(b.counts.superseded - before)
	return b, touched, err
}

// note makes the Profiles of in that are no repeats known, or pending with their
// partition of b. The caller holds mu.
func (p *dedupProcessor) note(b *batch, in *incoming) {
	for i := range in.profiles {
		profile := &in.profiles[i]
		if profile.repeat || profile.key == (profileKey{}) {
			continue
		}
		part := b.partition(profile.partition)
		b.addID(part, profile.key)
		if p.cfg.Window == 0 || p.cfg.Acknowledge == acknowledgeOnFlush {
			p.repeats.await(profile.key, part)
		} else {
			part.acknowledged = p.repeats.acknowledge(part.ids[len(part.ids)-1:])
		}
	}
}

// measure notes how much memory is held on to. The caller holds mu.
func (p *dedupProcessor) measure() {
	size := p.repeats.retained() + p.held
	if p.filling != nil {
		size += p.filling.size
	}
	for _, b := range p.waiting {
		size += b.size
	}
	p.telemetry.retained.Store(int64(size))
}

// flushIfFree hands the filling window to the sender, if that would take it now.
func (p *dedupProcessor) flushIfFree(why reason) bool {
	if !p.isFree() {
		return false
	}
	p.flush(why)
	return true
}

// flushOverdue hands over the filling window if its time was over before. The caller holds
// mu.
func (p *dedupProcessor) flushOverdue() {
	if p.overdue {
		p.repeats.expire() // what is beyond the horizon is not to take its room
		p.flushIfFree(reasonWindow)
	}
}

// flush hands the filling window to the sender. The caller holds mu.
func (p *dedupProcessor) flush(why reason) {
	if p.filling == nil {
		return
	}
	p.timer.Stop()
	p.telemetry.flushed(why)
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

// Shutdown flushes what is left and waits until it is accepted, for at most
// shutdown_timeout or until ctx ends. The error says what was dropped because that time was
// over.
func (p *dedupProcessor) Shutdown(ctx context.Context) error {
	defer p.telemetry.shutdown()
	p.mu.Lock()
	if p.stopping || p.cfg.Window == 0 || p.timer == nil {
		p.stopping = true
		p.mu.Unlock()
		p.cancel()
		return nil
	}
	p.stopping = true
	p.flush(reasonShutdown)
	p.mu.Unlock()
	close(p.hurry)
	p.wakeSender()

	defer p.cancel()
	given := ctx
	ctx, cancel := context.WithTimeout(given, p.cfg.ShutdownTimeout)
	defer cancel()
	select {
	case <-p.stopped:
	case <-ctx.Done():
		p.cancel()
		select {
		case <-p.stopped:
		case <-time.After(time.Second):
			return fmt.Errorf("profiles_dedup: the next component does not return within %s", p.timeOf(given))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dropped > 0 {
		return fmt.Errorf("profiles_dedup: %d windows were not accepted within %s and were dropped", p.dropped, p.timeOf(given))
	}
	return nil
}

// timeOf names what bounded a shutdown with ctx.
func (p *dedupProcessor) timeOf(ctx context.Context) string {
	if ctx.Err() != nil {
		return "the time that the collector gave"
	}
	return fmt.Sprintf("shutdown_timeout (%v)", p.cfg.ShutdownTimeout)
}
