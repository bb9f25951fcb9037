// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"errors"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/translator/gotracetranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/perfscripttranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// About how many bytes of memory a byte of a recording, of a trace or perf script, or of folded stacks takes at first, and what
// each takes besides. If it is more, they take more on the way.
const (
	recordingWork = 16
	traceWork     = 8
	partBytes     = 1 << 20 // of a file that are in memory for a slice of a trace, or a part of a text
	foldedWork    = 64
	minWork       = 1 << 20
)

// format is how the data of a payload are written.
type format int

const (
	formatPprof  format = iota
	formatLegacy        // pprof from before protobuf
	formatJFR           // a recording, or chunks of one in a file
	formatFolded
	formatTrace  // of Go, or slices of one in a file
	formatScript // the output of perf script, or parts of it in a file
)

// formatOf returns the format of a decompressed payload.
func (in *Ingester) formatOf(p *Payload) format {
	switch {
	case p.Parts != nil && p.Parts.script != nil, p.Parts == nil && perfscripttranslator.IsScript(p.Data):
		return formatScript // also if a client takes it for folded stacks
	case p.Folded != nil:
		return formatFolded
	case p.Parts != nil && p.Parts.slices != nil, gotracetranslator.IsTrace(p.Data):
		return formatTrace
	case p.Parts != nil, jfrtranslator.IsRecording(p.Data):
		return formatJFR
	case in.settings.Legacy && pproftranslator.IsLegacy(p.Data):
		return formatLegacy
	}
	return formatPprof
}

// estimate sets how many bytes the translation of a decompressed payload takes, of a recording or folded stacks
// no more than are left: their translators find out whether that is enough.
func (in *Ingester) estimate(r *Result, left int64) {
	data, size := r.payload.Data, int64(len(r.payload.Data))
	most := max(left, minWork)
	if parts := r.payload.Parts; parts != nil {
		size = min(parts.size, int64(in.limit()))
		if parts.chunks == nil {
			size = min(size, partBytes)
		}
	}
	switch r.format {
	case formatJFR:
		r.result = min(recordingWork*size+minWork, most)
	case formatTrace, formatScript:
		r.result = min(traceWork*size+minWork, most)
	case formatFolded:
		r.result = min(foldedWork*size+minWork, most)
	case formatLegacy:
		r.work = pproftranslator.LegacyMemory(data)
	default:
		r.work, r.result = in.settings.Unmarshaler.Memory(data)
	}
}

// more lets the translation of a payload take more for its result than was estimated, if that is free: half as much again, or
// what it needs at least.
func (r *Result) more(needed int64) (allowed int64, err error) {
	generous := max(needed, r.result+r.result/2)
	if err = r.lease.Take(generous - r.result); err == nil {
		r.result = generous
		return r.result, nil
	}
	if least := r.lease.Take(needed - r.result); least == nil {
		r.result = needed
		return r.result, nil
	} else if isTooLarge(err) {
		err = least // it may be only too large with that much more
	}
	return 0, err
}

// translate translates a payload within its memory, and describes it with the sender's information.
func (in *Ingester) translate(r *Result, seen occurrences) (err error) {
	p := &r.payload
	r.size = len(p.Data)
	if r.size == 0 && p.Parts == nil {
		return errors.New("empty, want a profile")
	}
	switch r.format {
	case formatJFR:
		err = in.translateJFR(r)
	case formatTrace:
		err = translateTrace(r)
	case formatScript:
		err = translateScript(r)
	case formatFolded:
		err = translateFolded(r)
	case formatLegacy:
		err = in.translateLegacy(r)
	default:
		u := *in.settings.Unmarshaler
		u.FunctionsOfLocations = p.FunctionsOfLocations
		r.Profiles, r.report, err = u.UnmarshalWithin(p.Data, r.result, r.more)
	}
	if err != nil {
		return err
	}
	r.Bytes = r.report.Bytes
	if err := in.describe(r, seen); err != nil {
		return err
	}
	*p = p.described()
	return nil
}

// described is what is needed of a payload after its translation. Functions of the rest may refer to the body.
func (p *Payload) described() Payload { return Payload{ProfileType: p.ProfileType, Sender: p.Sender} }

// translateLegacy translates a profile from before protobuf.
func (in *Ingester) translateLegacy(r *Result) error {
	message, err := pproftranslator.ConvertLegacy(r.payload.Data)
	if err != nil {
		return err
	}
	work, result := in.settings.Unmarshaler.Memory(message)
	taken, needed := r.work, int64(len(message))+work+result
	if needed > taken {
		if err := r.lease.Take(needed - taken); err != nil {
			return err
		}
	}
	r.work, r.result = max(taken, needed)-result, result
	r.Profiles, r.report, err = in.settings.Unmarshaler.UnmarshalWithin(message, result, r.more)
	return err
}

// translateFolded translates the folded stacks r.payload.Data.
func translateFolded(r *Result) error {
	folded := r.payload.Folded
	profiles, size, err := folded.UnmarshalWithin(r.payload.Data, r.result, r.more)
	if err != nil && Outcome(err) == OutcomeMalformed {
		return cmp.Or(pproftranslator.Lookalike(r.payload.Data), err)
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
