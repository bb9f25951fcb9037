// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"
)

// lane is what the next component did not accept for now of one partition, in order: of
// the window that was refused first, and of later ones, which wait behind it.
type lane struct {
	held []*held
	due  time.Time // when the first is offered again
}

// held is a partition of a window that is to be offered again. It is kept as OTLP
// protobuf: that takes less memory than the window, which goes when all its partitions
// have gone, and the next component may change what it is given.
type held struct {
	part    *partition
	message []byte
	size    int // bytes retained
	out     outgoing
	retry   *retries // since it was held
	offered bool
	err     error // the last answer of the next component, to this or what it waits behind
}

// hold keeps part, of the window of e, to be offered again: by itself after err, or behind
// what is in its lane.
func (s *sender) hold(e *emitter, part *partition, err error) {
	h := &held{part: part, retry: newRetries(s.cfg.RetryOnFailure), offered: true, err: err}
	l := s.lanes[part.key]
	if l == nil {
		l = &lane{}
		if !s.again(l, h) {
			return
		}
	} else {
		h.offered, h.err = false, l.held[0].err
	}
	pd := e.partition(part.key)
	h.out = outgoingOf(pd)
	if h.message, err = (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd); err != nil {
		s.giveUp(part, reasonPermanent, err)
		return
	}
	h.size = partitionSize + len(h.message) + len(profileKey{})*cap(part.ids)
	l.held = append(l.held, h)
	s.lanes[part.key] = l
	s.holding(h.size)
}

// holding notes that so many bytes more are held. What could not be flushed for want of
// room may be now.
func (p *dedupProcessor) holding(bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held += bytes
	p.flushOverdue()
	p.measure()
}

// again decides when h, the first of l, which was not accepted, is to be offered again.
// It gives up h if it is not.
func (s *sender) again(l *lane, h *held) bool {
	wait, again := h.retry.next()
	switch {
	case s.sending.Err() != nil:
		s.giveUp(h.part, reasonShutdown, h.err)
		return false
	case !again:
		s.giveUp(h.part, reasonRetriesEnded, h.err)
		return false
	}
	if s.hurried {
		wait = min(wait, hurriedWait)
	}
	l.due = time.Now().Add(wait)
	s.logger.Warn("The next component did not accept a window; it is offered again.",
		zap.Error(h.err), zap.Duration("after", wait))
	return true
}

// offer offers the first of a lane again. Once that has gone, what is behind it is due.
func (s *sender) offer(key string, l *lane) {
	if s.sending.Err() != nil {
		return
	}
	h := l.held[0]
	if h.offered {
		s.telemetry.retried()
	}
	h.offered = true
	pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(h.message)
	if err != nil {
		err = consumererror.NewPermanent(err)
	} else {
		err = s.next.ConsumeProfiles(s.contextOf(s.sending, h.part), pd)
	}
	switch {
	case err == nil:
		s.accept(h.part, h.out)
	case isPermanent(err):
		s.giveUp(h.part, reasonPermanent, err)
	default:
		if h.err = err; s.again(l, h) {
			return
		}
	}
	s.release(key, l, 1)
}

// release takes the first n out of a lane, whose outcome is known.
func (s *sender) release(key string, l *lane, n int) {
	size := 0
	for _, h := range l.held[:n] {
		size += h.size
	}
	clear(l.held[:n])
	if l.held = l.held[n:]; len(l.held) == 0 {
		delete(s.lanes, key)
	}
	s.holding(-size)
}

// dropAbandoned gives up, with on_flush, what nobody waits for: each of its callers is to
// send again.
func (s *sender) dropAbandoned() {
	if s.cfg.Acknowledge != acknowledgeOnFlush {
		return
	}
	for key, l := range s.lanes {
		var kept, gone []*held
		for _, h := range l.held {
			s.mu.Lock()
			abandoned := h.part.waiters == 0
			if abandoned {
				// From here on a repeat does not wait for it.
				s.repeats.forget(h.part)
				h.part.ids = nil
			}
			s.mu.Unlock()
			if abandoned {
				gone = append(gone, h)
			} else {
				kept = append(kept, h)
			}
		}
		if len(gone) == 0 {
			continue
		}
		for _, h := range gone {
			s.giveUp(h.part, reasonAbandoned, h.err)
		}
		l.held = append(gone, kept...)
		s.release(key, l, len(gone))
	}
}

// dropAll gives up all that is held, because the time of the shutdown is over.
func (s *sender) dropAll() {
	for key, l := range s.lanes {
		for _, h := range l.held {
			s.giveUp(h.part, reasonShutdown, h.err)
		}
		s.release(key, l, len(l.held))
	}
}
