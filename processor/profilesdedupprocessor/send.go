// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"strings"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/partialerror"
)

// emit makes the payload of a partition. It has no Profiles if none of them has samples.
func (p *dedupProcessor) emit(part *partition) (pd pprofile.Profiles, err error) {
	defer p.recoverTo(&err, errEmitPanicked)
	return part.window.merged.Emit(part.key), nil
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

// complete passes the outcome of a partition to the callers that wait for it. After a failure
// its Profiles are removed from p.seen, so that a retry of them is accepted.
func (p *dedupProcessor) complete(part *partition, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.completeLocked(part, err)
}

// completeLocked is complete for a caller that holds mu.
func (p *dedupProcessor) completeLocked(part *partition, err error) {
	if err != nil {
		p.seen.remove(part)
	} else if p.acknowledgesLater() {
		p.seen.acknowledge(part.keys)
	}
	part.err = err
	close(part.done)
}

// dropAbandoned drops a partition if no caller waits for it, in one step, so that no duplicate does
// from then on.
func (p *dedupProcessor) dropAbandoned(part *partition, err error) bool {
	p.mu.Lock()
	abandoned := part.waiters == 0
	if abandoned {
		p.completeLocked(part, err)
	}
	p.mu.Unlock()
	if abandoned {
		p.reportDropped(part, reasonAbandoned, err)
	}
	return abandoned
}

// reportDropped logs and counts a dropped partition. With on_flush, no caller has got a success.
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
