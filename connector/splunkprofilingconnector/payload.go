// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingconnector

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// payload becomes one profile. It is a record that is pprof, or the records of one scope
// and form that are text.
type payload struct {
	form     form
	resource pcommon.Map
	service  string
	records  []plog.LogRecord
	size     int // of their bodies, in bytes
}

// maxTexts bounds the bodies that are text in a payload, in bytes, so that a large request
// becomes several profiles instead of one that is too large.
const maxTexts = 192 << 10

// collect returns the payloads of a request, in the order of their first records. It counts
// records that are not profiles, and rejects those of an unknown form.
func (c *splunkConnector) collect(ctx context.Context, ld plog.Logs) []*payload {
	var payloads []*payload
	others := 0
	for _, rl := range ld.ResourceLogs().All() {
		resource := rl.Resource().Attributes()
		service := text(resource, ingest.AttributeServiceName)
		for _, sl := range rl.ScopeLogs().All() {
			texts := map[form]*payload{}
			for _, record := range sl.LogRecords().All() {
				if !isProfiling(sl.Scope(), record) {
					others++
					continue
				}
				f, err := formOf(record)
				if err != nil {
					c.report(ctx, result{service, 1, err})
					continue
				}
				p := texts[f]
				if p == nil || p.size > maxTexts {
					p = &payload{form: f, resource: resource, service: service}
					payloads = append(payloads, p)
				}
				if f.text {
					texts[f] = p
				}
				p.records = append(p.records, record)
				p.size += len(record.Body().Str())
			}
		}
	}
	c.count(ctx, outcomeNotProfiling, others)
	return payloads
}

// part is the first payloads of a request, as many as fit into the memory that one request
// may take.
type part struct {
	batch      *ingest.Batch
	prepared   []result // in the order of the batch, without the records that are rejected
	rejections []result
	taken      int // number of payloads that it deals with
}

// prepare translates the first payloads. The error is retryable and concerns all.
func (c *splunkConnector) prepare(ctx context.Context, r *ingest.Reservation, batch *ingest.Batch, payloads []*payload) (part, error) {
	done := part{batch: batch.Next(), taken: len(payloads)}
	for i, p := range payloads {
		err := c.add(ctx, &done, p, r)
		r.FreeBody()
		_, tooLarge := errors.AsType[*pproftranslator.LimitError](err)
		switch {
		case errors.Is(err, ingest.ErrInFlightLimit) || ctx.Err() != nil:
			return done, errors.Join(err, ctx.Err())
		case tooLarge && len(done.prepared) > 0:
			done.taken = i
			return done, nil
		case err != nil:
			done.rejections = append(done.rejections, result{p.service, len(p.records), err})
		}
	}
	return done, nil
}

// add adds a payload to a part.
func (c *splunkConnector) add(ctx context.Context, to *part, p *payload, r *ingest.Reservation) (err error) {
	defer ingest.Recover(c.logger, &err)
	var message []byte
	var rejections []result
	if p.form.text {
		message, rejections, err = c.callStacks(ctx, p, r)
	} else {
		message, err = p.form.pprof(ctx, p.records[0], c.config.Timestamps, int(c.config.MaxDecompressedSize), r)
	}
	if err != nil {
		return err
	}
	if len(rejections) < len(p.records) {
		data := p.form.payload(p.resource)
		data.Data, data.TimeRange.End = message, timeOf(p.records[0])
		if err := to.batch.AddTranslated(ctx, data, int(ingest.MaxPayload)); err != nil {
			return err
		}
		to.prepared = append(to.prepared, result{service: p.service, records: len(p.records) - len(rejections)})
	}
	to.rejections = append(to.rejections, rejections...)
	return nil
}

// memoryOfLine bounds the memory that a line of a call stack takes in addition to its text.
const memoryOfLine = 512

// callStacks returns the pprof message of records that are text, and rejects those that
// cannot be read.
func (c *splunkConnector) callStacks(ctx context.Context, p *payload, r *ingest.Reservation) (message []byte, rejections []result, err error) {
	memory := int64(0)
	for _, record := range p.records {
		text := record.Body().Str()
		memory += 4*int64(len(text)) + memoryOfLine*int64(2+strings.Count(text, "\n"))
	}
	free, err := r.Temporary(ctx, memory)
	if err != nil {
		return nil, nil, err
	}
	defer free()
	stacks := newCallStacks(p.form.allocation)
	for _, record := range p.records {
		stack, err := parseCallStack(record.Body().Str())
		if err != nil {
			rejections = append(rejections, result{p.service, 1, fmt.Errorf("call stack: %w", err)})
			continue
		}
		stacks.add(stack, record)
	}
	if message, err = encode(&stacks.p, stacks.moments, p.form.period, c.config.Timestamps); err == nil {
		err = r.Decompressed(ctx, int64(len(message)))
	}
	return message, rejections, err
}
