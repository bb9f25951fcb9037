// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/partialerror"
)

// export is the export goroutine. It sends pending windows, and retries when that is due, until
// the processor stops and nothing is left.
func (p *dedupProcessor) export() {
	defer close(p.stopped)
	for {
		draining := p.sendPending()
		p.dropRetries()
		if draining && len(p.retries) == 0 {
			return
		}
		r, wait := p.nextRetry(draining)
		if r != nil && wait <= 0 {
			p.retry(r) // one, as a pending window goes before the next
			continue
		}
		p.sleep(r != nil, wait)
	}
}

// sleep waits for a wake-up and, if timed, not longer than wait.
func (p *dedupProcessor) sleep(timed bool, wait time.Duration) {
	var due <-chan time.Time
	if timed {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-p.wake:
	case <-p.ctx.Done():
	}
}

// sendPending sends the partitions of pending windows, while the retry queue has room for payloads that
// are not accepted. It returns whether the processor is stopping and no window is left.
func (p *dedupProcessor) sendPending() (draining bool) {
	for {
		w, stopping := p.nextWindow()
		if w == nil {
			return stopping
		}
		part := w.unsent[0]
		w.unsent = w.unsent[1:]
		p.sendPartition(part)
	}
}

// nextWindow returns the first pending window that has an unsent partition, if it is to be sent
// now.
func (p *dedupProcessor) nextWindow() (w *window, stopping bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.updateRetainedMetric()
	for len(p.pending) > 0 && len(p.pending[0].unsent) == 0 {
		p.pending[0].merged, p.pending[0].partitions = nil, nil // retries need neither
		p.pending[0] = nil
		p.pending = p.pending[1:]
	}
	p.closeOverdue()
	if p.room != nil && (len(p.pending) == 0 || p.stopping) {
		close(p.room)
		p.room = nil
	}
	if len(p.pending) > 0 && (p.stopping || p.hasRoom()) {
		w = p.pending[0]
	}
	return w, p.stopping
}

// sendPartition sends a partition for the first time. If the next consumer does not accept it
// yet, it goes to the retry queue.
func (p *dedupProcessor) sendPartition(part *partition) {
	if err := p.ctx.Err(); err != nil {
		p.drop(part, reasonShutdown, err)
		return
	}
	pd, err := p.emit(part)
	if err == nil {
		p.telemetry.empty(part.window.merged.PartitionCounts(part.key).Empty)
		err = p.sendInBackground(part, pd)
	}
	switch {
	case err == nil:
		p.complete(part, nil)
	case isPermanent(err):
		p.drop(part, dropReason(err), err)
	default:
		p.queueRetry(part, err)
	}
}

// sendInBackground is send for the export goroutine, which outlives panics of the next consumer.
func (p *dedupProcessor) sendInBackground(part *partition, pd pprofile.Profiles) (err error) {
	defer p.recoverTo(&err, errNextPanicked)
	return p.send(p.ctx, part, pd)
}

// send sends pd, the payload of a partition or the rest of it, to the next consumer, unless pd has
// no Profiles.
func (p *dedupProcessor) send(ctx context.Context, part *partition, pd pprofile.Profiles) error {
	profiles, samples, bytes := pd.ProfileCount(), pd.SampleCount(), sizeOf(pd) // the next consumer may change pd
	if profiles == 0 {
		return nil
	}
	err := p.next.ConsumeProfiles(p.contextOf(ctx, part), pd)
	rest, partial := partialerror.Profiles(err)
	switch {
	case err == nil:
		p.telemetry.outgoing(profiles, samples, bytes)
	case partial:
		part.partial = true
		part.counts = merge.Counts{Payloads: part.counts.Payloads, Profiles: rest.ProfileCount(), Samples: rest.SampleCount()}
		p.telemetry.outgoing(max(0, profiles-part.counts.Profiles), max(0, samples-part.counts.Samples), max(0, bytes-sizeOf(rest)))
	}
	return err
}

// contextOf returns ctx with client metadata for each attribute of split_by that the resources
// of part have. Other metadata stay.
func (p *dedupProcessor) contextOf(ctx context.Context, part *partition) context.Context {
	if len(p.cfg.SplitBy) == 0 {
		return ctx
	}
	info := client.FromContext(ctx)
	all := map[string][]string{} // by lower-case name, as Metadata has them
	for name := range info.Metadata.Keys() {
		all[name] = info.Metadata.Get(name)
	}
	values := p.options.Values(part.key)
	for _, name := range p.cfg.SplitBy {
		delete(all, strings.ToLower(name))
		if value, ok := values[name]; ok {
			all[strings.ToLower(name)] = []string{value}
		}
	}
	info.Metadata = client.NewMetadata(all)
	return client.NewContext(ctx, info)
}

// drop completes a partition that will not be sent again.
func (p *dedupProcessor) drop(part *partition, why reason, err error) {
	if p.cfg.Acknowledge == acknowledgeOnReceive && why == reasonShutdown {
		p.lost.Add(1)
	}
	p.complete(part, err)
	p.reportDropped(part, why, err)
}

// reportDropped logs and counts a dropped partition. With on_flush no sender has been told that
// it is safe.
func (p *dedupProcessor) reportDropped(part *partition, why reason, err error) {
	log := p.logger.Error
	if p.cfg.Acknowledge == acknowledgeOnFlush {
		log = p.logger.Warn
	}
	log("Dropped payload", append(p.splitFields(part), zap.String("reason", string(why)), zap.Error(err),
		zap.Int("payloads", part.counts.Payloads), zap.Int("profiles", part.counts.Profiles), zap.Int("samples", part.counts.Samples))...)
	p.telemetry.dropped(part.counts, why)
}

// splitFields are the values of split_by in part, for logs.
func (p *dedupProcessor) splitFields(part *partition) []zap.Field {
	if len(p.cfg.SplitBy) == 0 {
		return nil
	}
	return []zap.Field{zap.Any("split_by", p.options.Values(part.key))}
}

// isPermanent reports whether err is permanent. An error that joins those of several components
// is so only if each of them is: any other component has asked for a retry.
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
