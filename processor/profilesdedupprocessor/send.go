// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"strings"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
)

// partition is the part of a closed window that is sent as one payload: without split_by all of it. One goroutine
// owns it.
type partition struct {
	key     string
	outcome *outcome
	counts  merge.Counts // of what is still to be sent
	source  source       // of the payloads
	size    int          // bytes that the last payload took; 0 if none was made
	retry   *backOff     // nil until it was sent in vain
}

// source makes the payload of a partition, anew for each attempt: the next consumer may change it.
type source interface {
	payload() (pprofile.Profiles, error)
}

// message is a payload that waits to be sent again, as OTLP: it takes less memory than a window.
type message struct {
	otlp []byte
	size int // bytes of otlp, and of the partition and its keys
}

func (m *message) payload() (pprofile.Profiles, error) {
	pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(m.otlp)
	if err != nil {
		return pd, consumererror.NewPermanent(err)
	}
	return pd, nil
}

// deliver sends a partition until the next consumer accepts it, or it is dropped.
func (p *dedupProcessor) deliver(part *partition) {
	err := p.sendUntilDone(part)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complete(part, err, p.dropReason(part, err))
}

// sendUntilDone returns the outcome of a partition.
func (p *dedupProcessor) sendUntilDone(part *partition) (err error) {
	defer p.recoverTo(&err, errExportPanicked)
	for {
		if err = p.attempt(part); err == nil || p.dropReason(part, err) != "" {
			return err
		}
		p.pause(part, err)
	}
}

// attempt waits until part may be sent, and sends it. After a retryable error, part keeps what the next consumer did not
// accept.
func (p *dedupProcessor) attempt(part *partition) error {
	allowed, err := p.awaitPermit(part)
	if err != nil {
		return err
	}
	defer p.endPermit(allowed)
	if part.retry != nil {
		p.telemetry.add(p.telemetry.ProcessorProfilesDedupRetries, 1)
	}
	measured := func(size int) { p.measure(part, allowed, size) }
	if err = p.send(p.ctx, part, measured); err == nil || p.dropReason(part, err) != "" {
		return err
	}
	if failure := p.keepRest(part, err); failure != nil {
		return failure
	}
	return err
}

// send sends the payload of a partition to the next consumer, unless it has no Profiles. Before, it calls measured with the
// bytes that the payload takes.
func (p *dedupProcessor) send(ctx context.Context, part *partition, measured func(size int)) (err error) {
	defer p.recoverTo(&err, errExportPanicked)
	pd, err := part.source.payload()
	if err != nil {
		return err
	}
	profiles, samples, bytes := pd.ProfileCount(), pd.SampleCount(), sizeOf(pd) // the next consumer may change pd
	if profiles == 0 {
		return nil
	}
	if samples == 0 {
		markIdle(pd)
	}
	measured(memoryOf(pd))
	err = p.next.ConsumeProfiles(p.contextOf(ctx, part), pd)
	if rest, partial := ingest.NotAccepted(err); partial {
		part.counts.Profiles, part.counts.Samples = rest.ProfileCount(), rest.SampleCount()
		p.telemetry.outgoing(max(0, profiles-rest.ProfileCount()), max(0, samples-rest.SampleCount()), max(0, bytes-sizeOf(rest)))
	} else if err == nil {
		p.telemetry.outgoing(profiles, samples, bytes)
	}
	return err
}

// markIdle adds a sample with the value 0 to a payload of intervals that are all idle: the Collector's otlp receiver answers a message without
// samples and passes nothing on, so that the time of the processes would be lost between a sidecar and its gateway.
func markIdle(pd pprofile.Profiles) {
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				p.Samples().AppendEmpty().Values().Append(0)
				return
			}
		}
	}
}

// measure counts the bytes of a payload in place of their estimate.
func (p *dedupProcessor) measure(part *partition, allowed *permit, size int) {
	part.size = size
	p.mu.Lock()
	defer p.mu.Unlock()
	if from, first := part.source.(*windowPart); first {
		from.window.measure(size, part.counts.Samples)
	}
	p.admission.resize(allowed, size)
}

func (p *dedupProcessor) endPermit(allowed *permit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.admission.end(allowed)
}

// keepRest keeps in part what the next attempt after an error sends: the Profiles that the next consumer
// did not accept.
func (p *dedupProcessor) keepRest(part *partition, sent error) error {
	rest, partial := ingest.NotAccepted(sent)
	_, kept := part.source.(*message)
	switch {
	case partial: // marshaling would change what is the next consumer's
		own := pprofile.NewProfiles()
		rest.CopyTo(own)
		return p.keep(part, own)
	case kept:
		return nil
	}
	return p.keepAll(part, func(int) {})
}

// keepAll keeps the payload of a partition whose window has its content until then. The payload is made anew, as the next
// consumer may have changed the one that was sent.
func (p *dedupProcessor) keepAll(part *partition, measured func(size int)) error {
	pd, err := part.source.payload()
	if err != nil {
		return err
	}
	measured(memoryOf(pd))
	return p.keep(part, pd)
}

// keep makes pd, as OTLP, the source of a partition.
func (p *dedupProcessor) keep(part *partition, pd pprofile.Profiles) error {
	otlp, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	if err != nil {
		return consumererror.NewPermanent(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := part.source
	kept := &message{otlp: otlp, size: partitionSize + len(otlp) + keySize*len(part.outcome.keys)}
	part.source = kept
	p.admission.messages += kept.size
	p.admission.waiting++
	p.release(before)
	return nil
}

// release frees the memory of a source that is not needed any more. The caller holds mu.
func (p *dedupProcessor) release(from source) {
	switch from := from.(type) {
	case *message:
		p.admission.messages -= from.size
		p.admission.waiting--
	case *windowPart:
		if from.window.unsent--; from.window.unsent == 0 {
			p.admission.closed -= from.window.size
		}
	}
	p.admission.grant()
	p.closeIfDue()
}

// complete resolves a partition, and logs and counts it if it was dropped. The caller holds mu.
func (p *dedupProcessor) complete(part *partition, err error, why reason) {
	p.resolve(part.outcome, err)
	p.release(part.source)
	p.telemetry.merged(part.counts)
	if err != nil {
		p.drop(part, err, why)
		return
	}
	p.reportSuccess()
}

// resolve passes an outcome to the callers that wait for it. After an error its Profiles are removed from
// p.seen, so that a retry of them is accepted. The caller holds mu.
func (p *dedupProcessor) resolve(result *outcome, err error) {
	if err == nil {
		p.seen.accept(result)
	} else {
		p.seen.remove(result)
	}
	result.keys, result.err = nil, err
	close(result.done)
}

// drop logs and counts a partition that is not sent. The caller holds mu.
func (p *dedupProcessor) drop(part *partition, err error, why reason) {
	log := p.logger.Error
	if p.cfg.Acknowledge == acknowledgeOnFlush { // no caller has got a success
		log = p.logger.Warn
	} else if why == reasonShutdown {
		p.lost++
	}
	counts := part.counts
	log("Dropped payload", append(p.splitFields(part), zap.String("reason", string(why)), zap.Error(err),
		zap.Int("payloads", counts.Payloads), zap.Int("profiles", counts.Profiles), zap.Int("samples", counts.Samples))...)
	p.telemetry.add(p.telemetry.ProcessorProfilesDedupDroppedProfiles, counts.Profiles, why)
	p.telemetry.add(p.telemetry.ProcessorProfilesDedupDroppedSamples, counts.Samples, why)
}

// splitFields are the values of split_by in part, for logs.
func (p *dedupProcessor) splitFields(part *partition) []zap.Field {
	if len(p.cfg.SplitBy) == 0 {
		return nil
	}
	return []zap.Field{zap.Any("split_by", p.options.Values(part.key))}
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
