// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"
)

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
		p.deliver(b)
		p.mu.Lock()
		p.waiting[0] = nil
		p.waiting = p.waiting[1:]
		if p.overdue {
			p.flush(reasonWindow)
		}
		p.measure()
		p.mu.Unlock()
	}
}

// hurriedWait is how long a window waits between attempts during shutdown.
const hurriedWait = 200 * time.Millisecond

// deliver offers the partitions of a window to the next component until each is
// accepted, refused for good, or given up.
func (p *dedupProcessor) deliver(b *batch) {
	for key := range b.window.partitions {
		if b.partitions[key] == nil {
			p.logger.DPanic("Nobody noted a partition of a window, which is passed on all the same. This is a bug.",
				zap.String("partition", key))
			b.partition(key)
		}
	}
	retry := newRetries(p.cfg.RetryOnFailure)
	rest, out := b.ordered(), 0
	for attempt := 0; ; attempt++ {
		var err error
		if rest, err = p.offer(b, rest, &out); len(rest) == 0 {
			p.telemetry.ratio(b.sizes.Total().Bytes, out)
			return
		}
		wait, again := retry.next()
		switch {
		case p.sending.Err() != nil:
			p.giveUp(b, rest, reasonShutdown, err)
			return
		case !again:
			p.giveUp(b, rest, reasonRetriesEnded, err)
			return
		}
		p.logger.Warn("The next component did not accept a window; it is offered again.",
			zap.Error(err), zap.Duration("after", wait))
		if rest = p.wait(b, rest, wait, err); len(rest) == 0 {
			return
		}
		p.telemetry.ProcessorProfilesDedupRetries.Add(background, int64(len(rest)))
	}
}

// offer offers each of parts once and returns those to be offered again, with an error
// of one of them. Once the time of the shutdown is over it offers none. The bytes of
// accepted dictionaries are added to out.
func (p *dedupProcessor) offer(b *batch, parts []*partition, out *int) (rest []*partition, err error) {
	// Made anew for each attempt: the next component may have changed it.
	e := newEmitter(b.window)
	for i, part := range parts {
		if ended := p.sending.Err(); ended != nil {
			if err == nil {
				err = ended
			}
			return append(rest, parts[i:]...), err
		}
		bytes, refusal := p.passOn(p.sending, e, part)
		switch {
		case refusal == nil:
			*out += bytes
			p.settle(part, nil)
		case isPermanent(refusal):
			p.giveUp(b, []*partition{part}, reasonPermanent, refusal)
		default:
			rest, err = append(rest, part), refusal
		}
	}
	return rest, err
}

// passOn offers a partition to the next component. It returns the bytes of the
// dictionary, if that accepted it.
func (p *dedupProcessor) passOn(ctx context.Context, e *emitter, part *partition) (int, error) {
	if len(p.settings.splitBy) > 0 {
		ctx = client.NewContext(ctx, p.settings.metadata(client.FromContext(ctx), part.key))
	}
	pd := e.partition(part.key)
	out := outgoingOf(pd)
	if err := p.next.ConsumeProfiles(ctx, pd); err != nil {
		return 0, err
	}
	p.telemetry.passedOn(out)
	return out.sizes.Total().Bytes, nil
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
		p.repeats.forget(part.ids)
	} else if p.cfg.Window == 0 || p.cfg.Acknowledge == acknowledgeOnFlush {
		p.repeats.acknowledge(part.ids)
	}
	part.err = err
	close(part.done)
}

// giveUp drops partitions. With on_flush nobody was told that they are safe, and who
// still waits is told now.
func (p *dedupProcessor) giveUp(b *batch, parts []*partition, why reason, err error) {
	log := p.logger.Error
	if p.cfg.Acknowledge == acknowledgeOnFlush {
		log = p.logger.Warn
	}
	for _, part := range parts {
		c := *b.window.partitions[part.key]
		log("A window was dropped.", zap.String("reason", string(why)), zap.Error(err),
			zap.Int("payloads", c.payloads), zap.Int("profiles", c.profiles), zap.Int("samples", c.samples))
		p.telemetry.dropped(c, why)
		p.mu.Lock()
		if p.cfg.Acknowledge == acknowledgeOnReceive {
			p.dropped++
		}
		p.settleLocked(part, err)
		p.mu.Unlock()
	}
}

// wait returns after d, or soon if shutdown has begun, with those of parts that are to
// be offered again. With on_flush it gives up, with err, those that nobody waits for:
// each of their callers is to send again.
func (p *dedupProcessor) wait(b *batch, parts []*partition, d time.Duration, err error) []*partition {
	timer := time.NewTimer(d)
	defer timer.Stop()
	hurry := p.hurry
	for {
		if p.cfg.Acknowledge == acknowledgeOnFlush {
			if parts = p.dropAbandoned(b, parts, err); len(parts) == 0 {
				return nil
			}
		}
		select {
		case <-timer.C:
			return parts
		case <-p.left:
		case <-hurry:
			timer.Reset(min(d, hurriedWait))
			hurry = nil
		case <-p.sending.Done():
			return parts
		}
	}
}

func (p *dedupProcessor) dropAbandoned(b *batch, parts []*partition, err error) (rest []*partition) {
	for _, part := range parts {
		p.mu.Lock()
		abandoned := part.waiters == 0
		if abandoned {
			// From here on a repeat does not wait for it.
			p.repeats.forget(part.ids)
			part.ids = nil
		}
		p.mu.Unlock()
		if abandoned {
			p.giveUp(b, []*partition{part}, reasonAbandoned, err)
		} else {
			rest = append(rest, part)
		}
	}
	return rest
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
