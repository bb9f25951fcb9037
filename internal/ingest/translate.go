// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"errors"

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

// format is how the data of a payload are written.
type format int

const (
	formatPprof  format = iota
	formatLegacy        // pprof from before protobuf
	formatJFR           // a recording, or chunks of one in a file
	formatFolded
)

// formatOf returns the format of a decompressed payload.
func (in *Ingester) formatOf(p *Payload) format {
	switch {
	case p.Folded != nil:
		return formatFolded
	case p.Recording.Chunks != nil, jfrtranslator.IsRecording(p.Data):
		return formatJFR
	case in.settings.Legacy && pproftranslator.IsLegacy(p.Data):
		return formatLegacy
	}
	return formatPprof
}

// memory is how many bytes the work on a decompressed payload takes at most. The translators of recordings and folded
// stacks end before they take more.
func (in *Ingester) memory(r *Result, left int64) int64 {
	data, size := r.payload.Data, int64(len(r.payload.Data))
	switch r.format {
	case formatJFR:
		if recording := r.payload.Recording; recording.Chunks != nil {
			size = min(recording.Size, int64(in.limit()))
		}
		return min(recordingWork*size+minWork, left)
	case formatFolded:
		return min(foldedWork*size+minWork, left)
	case formatLegacy:
		return pproftranslator.LegacyMemory(data)
	}
	return in.settings.Unmarshaler.Memory(data)
}

// translate translates a payload within its memory, describes it with the sender's information and leaves out Profiles
// without samples.
func (in *Ingester) translate(r *Result, seen occurrences, held *Reservation) (err error) {
	p := &r.payload
	r.size = len(p.Data)
	if r.size == 0 && p.Recording.Chunks == nil {
		return errors.New("empty, want a profile")
	}
	switch r.format {
	case formatJFR:
		err = in.translateJFR(r)
	case formatFolded:
		err = translateFolded(r)
	case formatLegacy:
		err = in.translateLegacy(r)
	default:
		u := *in.settings.Unmarshaler
		u.FunctionsOfLocations = p.FunctionsOfLocations
		r.Profiles, r.report, err = u.UnmarshalReport(p.Data)
	}
	if err != nil {
		return err
	}
	r.Bytes = r.report.Bytes
	if err := in.describe(r, seen); err != nil {
		return err
	}
	p.Data = nil // it is no longer needed
	if r.Profiles.ProfileCount() == 0 {
		r.Empty = 1 // a pprof without sample types
		return nil
	}
	if p.KeepEmpty {
		return nil
	}
	return r.LeaveOutEmpty(held)
}

// translateLegacy translates a profile from before protobuf.
func (in *Ingester) translateLegacy(r *Result) error {
	message, err := pproftranslator.ConvertLegacy(r.payload.Data)
	if err != nil {
		return err
	}
	if memory := int64(len(message)) + in.settings.Unmarshaler.Memory(message); memory > max(r.memory, minWork) {
		return &pproftranslator.LimitError{What: "memory of a profile from before protobuf in bytes", Limit: r.memory, Got: memory}
	}
	r.Profiles, r.report, err = in.settings.Unmarshaler.UnmarshalReport(message)
	return err
}

// translateFolded translates the folded stacks r.payload.Data.
func translateFolded(r *Result) error {
	folded := r.payload.Folded
	profiles, size, err := folded.UnmarshalSize(r.payload.Data, r.memory)
	if errors.Is(err, foldedtranslator.ErrMemory) {
		return &pproftranslator.LimitError{What: "memory of folded stacks in bytes", Limit: r.memory}
	}
	if err != nil {
		return err
	}
	r.Profiles, r.report.Bytes = profiles, size
	scope := profiles.ResourceProfiles().At(0).ScopeProfiles().At(0)
	sampletypes.WriteOrder(scope.Scope().Attributes(), []int{0})
	if folded.Period == 0 {
		return nil
	}
	profile := scope.Profiles().At(0)
	profile.SetPeriod(folded.Period)
	return setValueType(profiles.Dictionary().StringTable(), profile.PeriodType(), folded.SampleType, folded.Unit)
}

// LeaveOutEmpty leaves out the Profiles without samples, and counts them. OTLP wants at
// least one sample in each.
func (r *Result) LeaveOutEmpty(held *Reservation) error {
	empty := 0
	for profile := range sampletypes.ProfilesOf(r.Profiles) {
		if profile.Samples().Len() == 0 {
			empty++
		}
	}
	r.Empty += empty
	if empty == 0 {
		return nil
	}
	return r.Keep(func(p pprofile.Profile) bool { return p.Samples().Len() > 0 }, &merge.Options{}, held)
}
