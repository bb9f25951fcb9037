// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"crypto/sha256"
	"errors"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/translator/perfscripttranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// translateScript translates the output of perf script of a payload, or its next part. As translateJFR, it replaces
// the data by their hash.
func translateScript(r *Result) error {
	p := &r.payload
	var report perfscripttranslator.Report
	var err error
	if p.Parts != nil {
		script := p.Parts.script
		if r.Profiles, report, err = script.Next(r.result, r.more); errors.Is(err, budget.ErrFull) {
			script.Back() // the next attempt translates it
		}
		if err == nil {
			p.Data = script.Hash()
		}
	} else {
		u := perfscripttranslator.Unmarshaler{End: uint64(cmp.Or(p.TimeRange.End, p.Modified, pcommon.NewTimestampFromTime(p.Arrived)))}
		r.Profiles, report, err = u.UnmarshalWithin(p.Data, r.result, r.more)
		hash := sha256.Sum256(p.Data)
		p.Data = hash[:]
	}
	if err != nil {
		return err
	}
	r.otherLines, r.unpaired = report.OtherLines, report.Unpaired
	r.report = pproftranslator.Report{InvalidStrings: report.InvalidStrings, Bytes: report.Bytes}
	p.tellsItself()
	return nil
}
