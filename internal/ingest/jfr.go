// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"crypto/sha256"
	"errors"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// JFR is how recordings of JVMs are translated. They tell profile type and temporality
// themselves.
type JFR struct {
	// Timestamps keeps the time of each event, for timelines. Otherwise equal samples of a chunk are summed.
	Timestamps bool `mapstructure:"timestamps"`

	// NormalizeClassNames gives classes that JVMs and libraries make one name in all processes, such as Cart$$Lambda for
	// Cart$$Lambda$14/0x0000000800066840. The names of the recording stay the system names of functions.
	NormalizeClassNames bool `mapstructure:"normalize_class_names"`
}

// Recording has the client's information about a recording.
type Recording struct {
	// Labels are the labels of contexts, a LabelsSnapshot of Pyroscope; may be compressed.
	Labels []byte
	// SampleRate is the number of samples a second, or 0.
	SampleRate float64
}

func (in *Ingester) unmarshaler() jfrtranslator.Unmarshaler {
	return jfrtranslator.Unmarshaler{ChunkSize: in.limit(), Timestamps: in.settings.JFR.Timestamps, NormalizeClassNames: in.settings.JFR.NormalizeClassNames}
}

// translateJFR translates the recording of a payload, or its next chunk. It replaces the data by their
// hash, which profile IDs are made of: a recording has many scopes.
func (in *Ingester) translateJFR(r *Result) (err error) {
	p := &r.payload
	var report jfrtranslator.Report
	if p.Parts != nil {
		chunks := p.Parts.chunks
		if r.Profiles, report, err = chunks.Next(r.result, r.more); errors.Is(err, budget.ErrFull) {
			chunks.Back() // the next attempt translates it
		}
		p.Data, _ = chunks.Chunk()
	} else {
		u := in.unmarshaler()
		u.Labels, u.SampleRate = p.Recording.Labels, p.Recording.SampleRate
		r.Profiles, report, err = u.UnmarshalWithin(p.Data, r.result, r.more)
	}
	if err != nil {
		return err
	}
	r.size, r.outside = len(p.Data), report.OutsideTimes
	r.report = pproftranslator.Report{InvalidStrings: report.InvalidStrings, NegativeTimes: report.NegativeValues, Bytes: report.Bytes}
	hash := sha256.Sum256(p.Data)
	p.Data = hash[:]
	p.tellsItself()
	return nil
}

// tellsItself forgets what the client states and the data tell themselves.
func (p *Payload) tellsItself() {
	p.ProfileType, p.ProfileTypeOf, p.Temporality, p.ProfileAttributes = "", nil, nil, nil
}
