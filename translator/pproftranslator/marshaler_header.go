// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"math"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// pprofHeader is what a Profile says of the header of a pprof.
type pprofHeader struct {
	time, duration         int64 // nanoseconds
	periodType, periodUnit string
	period                 int64
	comments               []string
	dropFrames, keepFrames string
	docURL                 string
}

// headerKey is a pprofHeader with indices into the tables for what is not a
// number, so that equal headers have equal keys.
type headerKey struct {
	time, duration, period                   int64
	periodType, periodUnit                   int32
	comments, dropFrames, keepFrames, docURL int32
}

// header reads the header of p, which the other sample types of its pprof share.
func (c *pprofConverter) header(p pprofile.Profile) (pprofHeader, headerKey, error) {
	periodType := p.PeriodType()
	h := pprofHeader{
		time:       clampToInt64(uint64(p.Time())),
		duration:   clampToInt64(p.DurationNano()),
		periodType: c.text(periodType.TypeStrindex()),
		periodUnit: c.text(periodType.UnitStrindex()),
		period:     p.Period(),
	}
	key := headerKey{
		time: h.time, duration: h.duration, period: h.period,
		periodType: c.remap.String(periodType.TypeStrindex()), periodUnit: c.remap.String(periodType.UnitStrindex()),
	}
	if _, err := c.attributeSet(p.AttributeIndices()); err != nil {
		return h, key, err
	}
	for _, i := range p.AttributeIndices().All() {
		name, v, ok := c.attribute(i)
		if !ok {
			continue
		}
		switch name {
		case attrProfileComment:
			key.comments, h.comments = c.remap.Attribute(i), textsOf(v)
		case attrProfileDropFrames:
			key.dropFrames, h.dropFrames = c.remap.Attribute(i), validText(v.AsString())
		case attrProfileKeepFrames:
			key.keepFrames, h.keepFrames = c.remap.Attribute(i), validText(v.AsString())
		case attrProfileDocURL:
			key.docURL, h.docURL = c.remap.Attribute(i), validText(v.AsString())
		}
	}
	return h, key, nil
}

// write fills the header fields of p.
func (h *pprofHeader) write(p *profile.Profile) {
	p.TimeNanos, p.DurationNanos = h.time, h.duration
	p.PeriodType = &profile.ValueType{Type: h.periodType, Unit: h.periodUnit}
	p.Period = h.period
	p.Comments = append([]string(nil), h.comments...)
	p.DropFrames, p.KeepFrames, p.DocURL = h.dropFrames, h.keepFrames, h.docURL
}

// textsOf returns the elements of an array, or the one value that v is.
func textsOf(v pcommon.Value) []string {
	if v.Type() != pcommon.ValueTypeSlice {
		return []string{validText(v.AsString())}
	}
	texts := make([]string, 0, v.Slice().Len())
	for _, e := range v.Slice().All() {
		texts = append(texts, validText(e.AsString()))
	}
	return texts
}

func clampToInt64(v uint64) int64 { return int64(min(v, math.MaxInt64)) }
