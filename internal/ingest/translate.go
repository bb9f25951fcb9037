// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/translator/foldedtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// Translate returns the profiles that Prepare passes to Transform, and their size in bytes, for which it has
// called reserve in the end.
func (in *Ingester) Translate(p Payload, reserve func(bytes int64) error) (pprofile.Profiles, int, error) {
	t, err := in.translate(p, in.limit(), reserve)
	return t.profiles, t.report.Bytes, err
}

func (in *Ingester) translate(p Payload, limit int, reserve func(bytes int64) error) (t *Prepared, err error) {
	t = &Prepared{sender: p.Sender, profileType: p.ProfileType}
	decompressed := int64(0) // bytes of p.Data, if it was compressed
	p.Data, err = Decompress(p.Data, limit, func(bytes int64) error {
		decompressed = bytes
		return reserve(bytes)
	})
	t.size = len(p.Data)
	more := beyond(decompressed, reserve)
	switch {
	case err != nil:
		return t, err
	case p.Recording.Chunks != nil:
		err = in.translateJFR(t, &p, limit, more)
	case len(p.Data) == 0:
		return t, errors.New("empty, want a profile")
	case p.Folded != nil:
		err = translateFolded(t, &p, more)
	case jfrtranslator.IsRecording(p.Data):
		err = in.translateJFR(t, &p, limit, more)
	default:
		err = in.translatePprof(t, p.Data, more)
		if _, tooLarge := errors.AsType[*pproftranslator.LimitError](err); err != nil && p.Recording.Expected && !tooLarge && !MustRestart(err) {
			err = fmt.Errorf("starts with %.20q; want a JFR recording", p.Data)
		}
	}
	if err != nil {
		return t, err
	}
	if p.seen == nil {
		p.seen = occurrences{}
	}
	if p.Arrived.IsZero() {
		p.Arrived = time.Now()
	}
	if err = in.describe(t, p); err != nil {
		return t, err
	}
	return t, reserve(int64(t.report.Bytes))
}

// beyond returns reserve for work that takes its bytes in addition to held ones.
func beyond(held int64, reserve func(bytes int64) error) func(bytes int64) error {
	return func(bytes int64) error { return reserve(held + bytes) }
}

func (in *Ingester) translatePprof(t *Prepared, data []byte, reserve func(bytes int64) error) (err error) {
	t.profiles, t.report, err = in.settings.Unmarshaler.UnmarshalReport(data, reserve)
	if err == nil || !in.settings.Legacy || !pproftranslator.IsLegacy(data) {
		return err
	}
	message, err := pproftranslator.ConvertLegacy(data, reserve)
	if err != nil {
		return err
	}
	t.profiles, t.report, err = in.settings.Unmarshaler.UnmarshalReport(message, beyond(int64(cap(message)), reserve))
	return err
}

// translateFolded translates the folded stacks p.Data.
func translateFolded(t *Prepared, p *Payload, reserve func(bytes int64) error) error {
	memory, err := reserveMost(int64(len(p.Data))*workOfJFR*4+1<<20, reserve)
	if err != nil {
		return err
	}
	profiles, size, err := p.Folded.UnmarshalSize(p.Data, memory)
	if errors.Is(err, foldedtranslator.ErrMemory) {
		return &pproftranslator.LimitError{What: "memory of folded stacks in bytes", Limit: memory}
	}
	if err != nil {
		return err
	}
	t.profiles, t.report.Bytes = profiles, size
	scope := profiles.ResourceProfiles().At(0).ScopeProfiles().At(0)
	sampletypes.WriteOrder(scope.Scope().Attributes(), []int{0})
	if p.Folded.Period == 0 {
		return nil
	}
	profile := scope.Profiles().At(0)
	profile.SetPeriod(p.Folded.Period)
	return setValueType(profiles.Dictionary().StringTable(), profile.PeriodType(), "cpu", "nanoseconds")
}
