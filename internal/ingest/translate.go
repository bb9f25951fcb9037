// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/translator/foldedtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const (
	// recordingWork is how many bytes of memory a byte of a recording may take.
	recordingWork = 16

	// foldedWork is how many bytes of memory a byte of folded stacks may take.
	foldedWork = 64

	// minWork is what every recording and all folded stacks may take, in bytes.
	minWork = 1 << 20
)

// memory is how many bytes the work on a decompressed payload takes at most. The translators of recordings and folded
// stacks end before they take more.
func (in *Ingester) memory(p *Payload, left int64) int64 {
	size := int64(len(p.Data))
	switch {
	case p.Recording.Chunks != nil:
		return min(recordingWork*min(p.Recording.Size, int64(in.limit()))+minWork, left)
	case p.Folded != nil:
		return min(foldedWork*size+minWork, left)
	case jfrtranslator.IsRecording(p.Data):
		return min(recordingWork*size+minWork, left)
	case in.settings.Legacy && pproftranslator.IsLegacy(p.Data):
		return pproftranslator.LegacyMemory(p.Data)
	}
	return in.settings.Unmarshaler.Memory(p.Data)
}

// translate translates a payload within its memory, describes it with the sender's information and leaves out Profiles
// without samples.
func (in *Ingester) translate(t *Translated, seen occurrences, held *Reservation) (err error) {
	p := &t.payload
	t.size = len(p.Data)
	switch {
	case p.Recording.Chunks != nil:
		err = in.translateJFR(t)
	case len(p.Data) == 0:
		return errors.New("empty, want a profile")
	case p.Folded != nil:
		err = translateFolded(t)
	case jfrtranslator.IsRecording(p.Data):
		err = in.translateJFR(t)
	default:
		err = in.translatePprof(t)
		if _, tooLarge := errors.AsType[*pproftranslator.LimitError](err); err != nil && p.Recording.Expected && !tooLarge {
			err = fmt.Errorf("starts with %.20q; want a JFR recording", p.Data)
		}
	}
	if err != nil {
		return err
	}
	t.Bytes = t.report.Bytes
	if err := in.describe(t, seen); err != nil {
		return err
	}
	p.Data = nil // it is no longer needed
	if t.Profiles.ProfileCount() == 0 {
		t.Empty = 1 // a pprof without sample types
		return nil
	}
	if p.KeepEmpty {
		return nil
	}
	return t.LeaveOutEmpty(held)
}

func (in *Ingester) translatePprof(t *Translated) (err error) {
	data := t.payload.Data
	t.Profiles, t.report, err = in.settings.Unmarshaler.UnmarshalReport(data)
	if err == nil || !in.settings.Legacy || !pproftranslator.IsLegacy(data) {
		return err
	}
	message, err := pproftranslator.ConvertLegacy(data)
	if err != nil {
		return err
	}
	if memory := int64(len(message)) + in.settings.Unmarshaler.Memory(message); memory > max(t.memory, minWork) {
		return &pproftranslator.LimitError{What: "memory of a profile from before protobuf in bytes", Limit: t.memory, Got: memory}
	}
	t.Profiles, t.report, err = in.settings.Unmarshaler.UnmarshalReport(message)
	return err
}

// translateFolded translates the folded stacks t.payload.Data.
func translateFolded(t *Translated) error {
	folded := t.payload.Folded
	profiles, size, err := folded.UnmarshalSize(t.payload.Data, t.memory)
	if errors.Is(err, foldedtranslator.ErrMemory) {
		return &pproftranslator.LimitError{What: "memory of folded stacks in bytes", Limit: t.memory}
	}
	if err != nil {
		return err
	}
	t.Profiles, t.report.Bytes = profiles, size
	scope := profiles.ResourceProfiles().At(0).ScopeProfiles().At(0)
	sampletypes.WriteOrder(scope.Scope().Attributes(), []int{0})
	if folded.Period == 0 {
		return nil
	}
	profile := scope.Profiles().At(0)
	profile.SetPeriod(folded.Period)
	return setValueType(profiles.Dictionary().StringTable(), profile.PeriodType(), "cpu", "nanoseconds")
}

// LeaveOutEmpty leaves out the Profiles without samples, and counts them. OTLP wants at
// least one sample in each.
func (t *Translated) LeaveOutEmpty(held *Reservation) error {
	count := t.Profiles.ProfileCount()
	empty := 0
	for profile := range ProfilesOf(t.Profiles) {
		if profile.Samples().Len() == 0 {
			empty++
		}
	}
	t.Empty += empty
	switch empty {
	case 0:
		return nil
	case count:
		t.Profiles = pprofile.NewProfiles()
		return nil
	}
	return t.Keep(func(p pprofile.Profile) bool { return p.Samples().Len() > 0 }, &merge.Options{}, held)
}
