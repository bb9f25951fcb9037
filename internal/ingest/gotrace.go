// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/translator/gotracetranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// translateTrace translates the execution trace of a payload, or its next part. As translateJFR, it replaces the data by
// their hash.
func translateTrace(r *Result) error {
	p := &r.payload
	var report gotracetranslator.Report
	var err error
	if p.Parts != nil {
		slices := p.Parts.slices
		if r.Profiles, report, err = slices.Next(r.result, r.more); errors.Is(err, budget.ErrFull) {
			slices.Back() // the next attempt translates it
		}
		if err == nil {
			p.Data = slices.Hash()
		}
	} else {
		u := gotracetranslator.Unmarshaler{
			Start: timeOf(p.TimeRange.Start), End: timeOf(cmp.Or(p.TimeRange.End, p.Modified, pcommon.NewTimestampFromTime(p.Arrived))),
		}
		r.Profiles, report, err = u.UnmarshalWithin(p.Data, r.result, r.more)
		hash := sha256.Sum256(p.Data)
		p.Data = hash[:]
	}
	if err != nil {
		return err
	}
	r.damage, r.droppedNames = report.Damage, report.DroppedNames
	r.report = pproftranslator.Report{InvalidStrings: report.InvalidStrings, Bytes: report.Bytes}
	p.tellsItself()
	return nil
}

// timeOf is a time that a client states, or zero if it is not known.
func timeOf(t pcommon.Timestamp) time.Time {
	if t < endOf1970 {
		return time.Time{}
	}
	return t.AsTime()
}
