// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v7"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
)

// drainBackoff bounds the time between attempts during shutdown.
const drainBackoff = 200 * time.Millisecond

// exportAll exports partitions, one after the other, until the processor stops and nothing is left.
func (p *dedupProcessor) exportAll() {
	defer close(p.stopped)
	for {
		part, wait, ended := p.nextPartition()
		if ended {
			return
		}
		if part != nil {
			p.export(part)
			continue
		}
		select {
		case <-time.After(wait):
		case <-p.wake:
		case <-p.ctx.Done():
		}
	}
}

// wakeUp ends the wait of the goroutine, or its next one.
func (p *dedupProcessor) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// nextPartition takes the partition to send now: the next one of the window being exported, if the retry
// queue has room in case it is not accepted; otherwise a retry that is due. If there is none, it
// returns how long to wait for one.
func (p *dedupProcessor) nextPartition() (part *partition, wait time.Duration, ended bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exporting != nil && len(p.exporting.unsent) == 0 {
		p.exporting = nil
	}
	p.closeIfDue()
	if w := p.exporting; w != nil && p.hasRoom() {
		part, w.unsent = w.unsent[0], w.unsent[1:]
		return part, 0, false
	}
	wait = time.Hour
	if p.open != nil && p.hasRoom() {
		wait = time.Until(p.open.end)
	}
	if len(p.retries) > 0 {
		due := time.Until(p.retries[0].due)
		if due <= 0 || p.ctx.Err() != nil {
			part, p.retries = p.retries[0], p.retries[1:]
		}
		wait = min(wait, due)
	}
	return part, wait, part == nil && p.stopping && len(p.retries) == 0
}

// export sends a partition. If the next consumer does not accept it yet, it goes to the retry queue.
func (p *dedupProcessor) export(part *partition) {
	if part.message != nil {
		p.telemetry.add(p.telemetry.ProcessorProfilesDedupRetries, 1)
	}
	err := p.ctx.Err()
	if err == nil {
		err = p.send(p.ctx, part)
	}
	dropped := p.dropReason(part, err)
	if err != nil && dropped == "" {
		if failure := p.keepRest(part, err); failure != nil {
			err, dropped = failure, p.dropReason(part, failure)
		}
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil || dropped != "" {
		p.complete(part, err, dropped)
		return
	}
	if part.failed.IsZero() {
		cfg := p.cfg.RetryOnFailure
		part.failed, part.backoff = time.Now(), backoff.ExponentialBackOff{
			InitialInterval: cfg.InitialInterval, MaxInterval: cfg.MaxInterval,
			Multiplier: cfg.Multiplier, RandomizationFactor: cfg.RandomizationFactor,
		}
	}
	wait := part.backoff.NextBackOff()
	if p.stopping {
		wait = min(wait, drainBackoff)
	}
	part.due, part.window = time.Now().Add(wait), nil
	p.retrySize -= part.size
	part.size = retryOverhead + len(part.message) + keySize*len(part.keys)
	p.retrySize += part.size
	at, _ := slices.BinarySearchFunc(p.retries, part.due, func(other *partition, due time.Time) int { return other.due.Compare(due) })
	p.retries = slices.Insert(p.retries, at, part)
	p.logger.Warn("Export failed; retrying", append(p.splitFields(part), zap.Error(err), zap.Duration("retry_after", wait))...)
}

// dropReason is the reason why a partition is not sent again after err, or empty.
func (p *dedupProcessor) dropReason(part *partition, err error) reason {
	retry := p.cfg.RetryOnFailure
	switch {
	case err == nil:
	case errors.Is(err, errExportPanicked):
		return reasonPanic
	case ingest.IsPermanent(err):
		return reasonPermanent
	case p.ctx.Err() != nil:
		return reasonShutdown
	case !retry.Enabled,
		retry.MaxElapsedTime > 0 && !part.failed.IsZero() && time.Since(part.failed) >= retry.MaxElapsedTime:
		return reasonRetriesExhausted
	}
	return ""
}

// keepRest keeps in part what the next attempt after an error sends: the Profiles that the next consumer
// did not accept.
func (p *dedupProcessor) keepRest(part *partition, sent error) (err error) {
	defer p.recoverTo(&err, errExportPanicked)
	rest, partial := ingest.NotAccepted(sent)
	switch {
	case partial: // marshaling would change what is the next consumer's
		own := pprofile.NewProfiles()
		rest.CopyTo(own)
		rest = own
	case part.message != nil:
		return nil
	default: // once more, as the next consumer may have changed it
		if rest, err = p.payload(part); err != nil {
			return err
		}
	}
	message, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(rest)
	if err != nil {
		return consumererror.NewPermanent(err)
	}
	part.message = message
	return nil
}

// payload makes the payload of a partition, or takes the one that is kept. It has no Profiles if none of
// them has samples.
func (p *dedupProcessor) payload(part *partition) (pprofile.Profiles, error) {
	if part.message == nil {
		pd := part.window.merged.Emit(part.key)
		part.counts.Empty = part.window.merged.PartitionCounts(part.key).Empty
		return pd, nil
	}
	pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(part.message)
	if err != nil {
		return pd, consumererror.NewPermanent(err)
	}
	return pd, nil
}

// send sends the payload of a partition to the next consumer, unless it has no Profiles.
func (p *dedupProcessor) send(ctx context.Context, part *partition) (err error) {
	defer p.recoverTo(&err, errExportPanicked)
	pd, err := p.payload(part)
	if err != nil {
		return err
	}
	profiles, samples, bytes := pd.ProfileCount(), pd.SampleCount(), sizeOf(pd) // the next consumer may change pd
	if profiles == 0 {
		return nil
	}
	err = p.next.ConsumeProfiles(p.contextOf(ctx, part), pd)
	if rest, partial := ingest.NotAccepted(err); partial {
		part.counts.Profiles, part.counts.Samples = rest.ProfileCount(), rest.SampleCount()
		p.telemetry.outgoing(max(0, profiles-rest.ProfileCount()), max(0, samples-rest.SampleCount()), max(0, bytes-sizeOf(rest)))
	} else if err == nil {
		p.telemetry.outgoing(profiles, samples, bytes)
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
