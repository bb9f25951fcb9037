// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingconnector

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// payload becomes one profile. It is a record that is pprof, or the records of one scope
// and form that are text.
type payload struct {
	form     form
	resource pcommon.Map
	service  string
	records  []plog.LogRecord
	size     int // of their bodies, in bytes
	dropped  int // fields of threads that no attribute has

	translated *ingest.Result
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
		service := dictionary.TextOf(resource, ingest.AttributeServiceName)
		for _, sl := range rl.ScopeLogs().All() {
			texts := map[form]*payload{}
			for _, record := range sl.LogRecords().All() {
				if !isProfiling(sl.Scope(), record) {
					others++
					continue
				}
				f, err := formOf(record)
				if err != nil {
					c.report(ctx, service, 1, err)
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

// translate translates a payload. Records that are text and cannot be read are reported and left out. After an error, the lease
// holds what it did before.
func (c *splunkConnector) translate(ctx context.Context, p *payload, with *ingest.Batch, lease *budget.Lease) (err error) {
	before := lease.Used()
	kept := int64(0)
	defer func() { lease.Free(lease.Used() - before - kept) }()
	defer ingest.Recover(c.logger, &err)
	var message []byte
	if p.form.text {
		message, err = c.callStacks(ctx, p, lease)
	} else {
		message, err = c.pprof(p, lease)
	}
	if err != nil || len(p.records) == 0 {
		return err
	}
	if err := lease.Take(int64(len(message))); err != nil {
		return err
	}
	data := p.form.payload(p.resource)
	data.Data, data.TimeRange.End = message, timeOf(p.records[0])
	if p.translated, err = with.TranslateOne(ctx, data); err != nil {
		return err
	}
	for profile := range sampletypes.ProfilesOf(p.translated.Profiles) {
		profile.SetDroppedAttributesCount(uint32(min(p.dropped, math.MaxUint32)))
	}
	kept = int64(p.translated.Bytes)
	return nil
}

// memoryOfLine bounds the memory that a line of a call stack takes in addition to its text.
const memoryOfLine = 512

// callStacks returns the pprof message of records that are text.
func (c *splunkConnector) callStacks(ctx context.Context, p *payload, lease *budget.Lease) ([]byte, error) {
	memory := int64(0)
	for _, record := range p.records {
		text := record.Body().Str()
		memory += 4*int64(len(text)) + memoryOfLine*int64(2+strings.Count(text, "\n"))
	}
	if err := lease.Take(memory); err != nil {
		return nil, err
	}
	defer lease.Free(memory)
	stacks := newCallStacks(p.form.allocation)
	p.records = slices.DeleteFunc(p.records, func(record plog.LogRecord) bool {
		stack, err := parseCallStack(record.Body().Str())
		if err != nil {
			c.report(ctx, p.service, 1, fmt.Errorf("call stack: %w", err))
			return true
		}
		stacks.add(stack, record)
		return false
	})
	p.dropped = stacks.dropped
	return encode(&stacks.p, stacks.moments, p.form.period, c.config.Timestamps)
}

// pprof returns the pprof message of a record, completed.
func (c *splunkConnector) pprof(p *payload, lease *budget.Lease) ([]byte, error) {
	encoded := p.records[0].Body().Str()
	if err := lease.Take(int64(base64.StdEncoding.DecodedLen(len(encoded)))); err != nil {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("the body is not base64: %w", err)
	}
	if ingest.Compression(data) != "gzip" {
		return nil, errors.New("the body is not gzip in base64")
	}
	if data, err = ingest.Decompress(lease, data, int(c.config.MaxDecompressedSize)); err != nil {
		return nil, err
	}
	memory, err := memoryOfPprof(data)
	if err != nil {
		return nil, fmt.Errorf("pprof: %w", err)
	}
	if err := lease.Take(memory); err != nil {
		return nil, err
	}
	defer lease.Free(memory)
	message, err := completePprof(data, !p.form.allocation, c.config.Timestamps)
	if err != nil {
		return nil, fmt.Errorf("pprof: %w", err)
	}
	return message, nil
}
