// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"
)

// sender passes on windows until the processor stops and nothing is left. What is its own
// is used by its goroutine alone.
type sender struct {
	*dedupProcessor
	lanes   map[string]*lane // what is offered again, by the key of its partition
	begun   *delivery        // of the first that waits; nil if that has not begun
	hurried bool             // shutdown has begun
}

// delivery is a window that is being passed on: as far as it has come.
type delivery struct {
	emitter *emitter
	left    []*partition // in order
}

// hurriedWait is how long something waits between attempts during shutdown.
const hurriedWait = 200 * time.Millisecond

func (s *sender) run() {
	defer close(s.stopped)
	for {
		stopping := s.deliverWaiting()
		if s.sending.Err() != nil { // the time of the shutdown is over
			s.dropAll()
		}
		if stopping && len(s.lanes) == 0 {
			return
		}
		s.dropAbandoned()
		s.hurryUp()
		due := s.due()
		for _, key := range due {
			if l := s.lanes[key]; l != nil {
				s.offer(key, l)
			}
			// It does not wait for what is slow to fail, nor for a lane to drain.
			s.deliverWaiting()
		}
		if len(due) == 0 {
			s.wait()
		}
	}
}

// deliverWaiting passes on the waiting windows, as far as there is room for what may not
// be accepted. It returns whether the processor is stopping, and none is left.
func (s *sender) deliverWaiting() (stopping bool) {
	for {
		s.mu.Lock()
		s.flushOverdue()
		var b *batch
		if len(s.waiting) > 0 && (s.hasRoom() || s.stopping) {
			b = s.waiting[0]
		}
		stopping = s.stopping
		s.mu.Unlock()
		if b == nil {
			return stopping
		}
		if s.begun == nil {
			s.begun = s.begin(b)
		}
		if !s.deliver(s.begun) {
			continue
		}
		s.begun = nil
		s.mu.Lock()
		s.waiting[0] = nil
		s.waiting = s.waiting[1:]
		s.measure()
		s.mu.Unlock()
	}
}

// due returns the keys of the lanes that are to be offered again now, in the order of
// their times.
func (s *sender) due() []string {
	now := time.Now()
	var keys []string
	for key, l := range s.lanes {
		if !l.due.After(now) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(s.lanes[a].due.Compare(s.lanes[b].due), cmp.Compare(a, b))
	})
	return keys
}

// wait returns when something is to be done.
func (s *sender) wait() {
	var timer <-chan time.Time
	var ended <-chan struct{}
	var next time.Time
	for _, l := range s.lanes {
		if next.IsZero() || l.due.Before(next) {
			next = l.due
		}
	}
	if len(s.lanes) > 0 {
		t := time.NewTimer(time.Until(next))
		defer t.Stop()
		timer, ended = t.C, s.sending.Done()
	}
	hurry := s.hurry
	if s.hurried {
		hurry = nil
	}
	select {
	case <-timer:
	case <-s.wake:
	case <-s.left:
	case <-hurry:
	case <-ended:
	}
}

// hurryUp cuts backoffs short once shutdown has begun.
func (s *sender) hurryUp() {
	if s.hurried {
		return
	}
	select {
	case <-s.hurry:
	default:
		return
	}
	s.hurried = true
	soon := time.Now().Add(hurriedWait)
	for _, l := range s.lanes {
		if soon.Before(l.due) {
			l.due = soon
		}
	}
}

// begin returns the delivery of b, of which nothing has been offered.
func (s *sender) begin(b *batch) *delivery {
	for key := range b.window.partitions {
		if b.partitions[key] == nil {
			s.logger.DPanic("Nobody noted a partition of a window, which is passed on all the same. This is a bug.",
				zap.String("partition", key))
			b.partition(key)
		}
	}
	d := &delivery{newEmitter(b.window), b.ordered()}
	outcome := &outcome{open: len(d.left), in: b.sizes.Total().Bytes}
	for _, part := range d.left {
		part.counts, part.outcome = *b.window.partitions[part.key], outcome
	}
	return d
}

// deliver offers each partition that is left of a window to the next component once. What
// that does not accept for now is held, each with a dictionary of its own: what is left
// when there is no more room for that stays in the window. It returns whether none is left.
func (s *sender) deliver(d *delivery) bool {
	for ; len(d.left) > 0; d.left = d.left[1:] {
		s.mu.Lock()
		waits := !s.hasRoom() && !s.stopping
		s.mu.Unlock()
		if waits {
			return false
		}
		s.deliverPartition(d.emitter, d.left[0])
	}
	return true
}

func (s *sender) deliverPartition(e *emitter, part *partition) {
	if err := s.sending.Err(); err != nil {
		s.giveUp(part, reasonShutdown, err)
		return
	}
	if s.lanes[part.key] != nil { // it would overtake
		s.hold(e, part, nil)
		return
	}
	out, err := s.passOn(s.sending, e, part)
	switch {
	case err == nil:
		s.accept(part, out)
	case isPermanent(err):
		s.giveUp(part, reasonPermanent, err)
	default:
		s.hold(e, part, err)
	}
}

// passOn offers a partition to the next component. It returns what is to be counted if
// that accepted it.
func (p *dedupProcessor) passOn(ctx context.Context, e *emitter, part *partition) (outgoing, error) {
	pd := e.partition(part.key)
	out := outgoingOf(pd)
	return out, p.next.ConsumeProfiles(p.contextOf(ctx, part), pd)
}

// contextOf is ctx with the client metadata of a partition.
func (p *dedupProcessor) contextOf(ctx context.Context, part *partition) context.Context {
	if len(p.settings.splitBy) == 0 {
		return ctx
	}
	return client.NewContext(ctx, p.settings.metadata(client.FromContext(ctx), part.key))
}

// outcome is what becomes of the partitions of one window.
type outcome struct {
	open    int // whose outcome is not known yet
	dropped bool
	in, out int // bytes of dictionaries
}

// accept notes that the next component has accepted a partition.
func (p *dedupProcessor) accept(part *partition, out outgoing) {
	p.telemetry.passedOn(out)
	o := part.outcome
	o.open--
	if o.out += out.sizes.Total().Bytes; o.open == 0 && !o.dropped {
		p.telemetry.ratio(o.in, o.out)
	}
	p.settle(part, nil)
}

// settle makes the outcome of a partition known: to those who wait, and for repeats of
// what is in it, which a failure forgets.
func (p *dedupProcessor) settle(part *partition, err error) {
	p.mu.Lock()
	p.settleLocked(part, err)
	p.mu.Unlock()
}

func (p *dedupProcessor) settleLocked(part *partition, err error) {
	if err != nil {
		p.repeats.forget(part)
	} else if p.cfg.Window == 0 || p.cfg.Acknowledge == acknowledgeOnFlush {
		p.repeats.acknowledge(part.ids)
	}
	part.err = err
	close(part.done)
}

// giveUp drops a partition. With on_flush nobody was told that it is safe, and who still
// waits is told now.
func (p *dedupProcessor) giveUp(part *partition, why reason, err error) {
	log := p.logger.Error
	if p.cfg.Acknowledge == acknowledgeOnFlush {
		log = p.logger.Warn
	}
	c := part.counts
	log("A window was dropped.", zap.String("reason", string(why)), zap.Error(err),
		zap.Int("payloads", c.payloads), zap.Int("profiles", c.profiles), zap.Int("samples", c.samples))
	p.telemetry.dropped(c, why)
	part.outcome.open--
	part.outcome.dropped = true
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cfg.Acknowledge == acknowledgeOnReceive && why == reasonShutdown {
		p.dropped++
	}
	p.settleLocked(part, err)
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
