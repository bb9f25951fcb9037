// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// JFR is how recordings of JVMs are translated. They tell profile type and temporality
// themselves.
type JFR struct {
	// Timestamps keeps the time of each event.
	Timestamps bool
	// OriginalPayload attaches each recording to the first of its Profiles.
	OriginalPayload bool
}

// Recording is what a client says about a recording.
type Recording struct {
	// Labels are the labels of contexts, a LabelsSnapshot of Pyroscope; may be compressed.
	Labels []byte
	// SampleRate is the number of samples a second, or 0.
	SampleRate float64
}

const originalFormat = "jfr"

// translateJFR translates the recording p.Data. The reservation holds reserved bytes already.
// It replaces p.Data by its hash, which profile IDs are made of: a recording has many scopes.
func (in *Ingester) translateJFR(t *Prepared, p *Payload, limit int, reserved int64, reserve func(bytes int64) error) error {
	settings := in.settings.JFR
	if settings == nil || p.Transform != nil {
		return ErrJFR
	}
	labels, err := Decompress(p.Recording.Labels, limit, func(bytes int64) error { return reserve(reserved + bytes) })
	if err != nil {
		return fmt.Errorf("labels: %w", err)
	}
	if len(p.Recording.Labels) > 0 && &labels[:1][0] != &p.Recording.Labels[0] {
		reserved += int64(cap(labels))
	}
	u := jfrtranslator.Unmarshaler{
		ChunkSize: limit, Timestamps: settings.Timestamps,
		Labels: labels, SampleRate: p.Recording.SampleRate,
	}
	profiles, report, err := u.UnmarshalReport(p.Data, func(bytes int64) error { return reserve(reserved + bytes) })
	if over, isLimit := errors.AsType[*jfrtranslator.LimitError](err); isLimit {
		return &pproftranslator.LimitError{What: over.What, Limit: over.Limit}
	}
	if err != nil {
		return err
	}
	t.profiles = profiles
	t.report = pproftranslator.Report{InvalidStrings: report.InvalidStrings, NegativeTimes: report.NegativeValues, Bytes: report.Bytes}
	if settings.OriginalPayload && profiles.ProfileCount() > 0 {
		if t.report.Bytes += len(p.Data); reserve(reserved+int64(t.report.Bytes)) != nil {
			return ErrInFlightLimit
		}
		first := profiles.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
		first.SetOriginalPayloadFormat(originalFormat)
		first.OriginalPayload().FromRaw(p.Data)
	}
	hash := sha256.Sum256(p.Data)
	p.Data = hash[:]
	p.ProfileType, p.ProfileTypeOf, p.Temporality, p.ProfileAttributes = "", nil, nil, nil
	return nil
}
