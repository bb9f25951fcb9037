// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// record is the unit of writing.
type record struct {
	data      []byte // nil for a pprof without samples, which is not written
	fileType  string // starts the name of a pprof file
	samples   int
	summaries []recordfile.Summary       // nil if readers reject the record
	converted *pproftranslator.Converted // the pprof that it is; nil means all profiles of the group
}

// marshalFunc converts profiles to records and calls add for each. It may change the
// profiles, unless they are read-only, but not their meaning. The error concerns profiles
// that cannot be converted; the records of the others are added.
type marshalFunc func(pd pprofile.Profiles, add func(record)) error

func marshalerOf(format string) marshalFunc {
	switch format {
	case formatPprof:
		return marshalPprof
	case formatJSON:
		return marshalOTLP(&pprofile.JSONMarshaler{}, &pprofile.JSONUnmarshaler{})
	default:
		return marshalOTLP(&pprofile.ProtoMarshaler{}, &pprofile.ProtoUnmarshaler{})
	}
}

// marshalOTLP makes one record of all profiles.
func marshalOTLP(m pprofile.Marshaler, u pprofile.Unmarshaler) marshalFunc {
	return func(pd pprofile.Profiles, add func(record)) error {
		pd = marshalable(pd)
		var summaries []recordfile.Summary
		retried := wasMarshaled(pd)
		if !retried {
			summaries, _ = recordfile.Summarize(pd) // nil after an error
		}
		data, err := m.MarshalProfiles(pd)
		if err != nil {
			return err
		}
		if retried {
			if read, err := u.UnmarshalProfiles(data); err == nil {
				summaries, _ = recordfile.Summarize(read)
			}
		}
		add(record{data: data, samples: pd.SampleCount(), summaries: summaries})
		return nil
	}
}

// wasMarshaled reports whether a payload is retried: marshalling has turned its strings into references, which pdata
// shows as empty until it unmarshals them.
func wasMarshaled(pd pprofile.Profiles) bool {
	for _, rp := range pd.ResourceProfiles().All() {
		if _, found := rp.Resource().Attributes().Get(""); found {
			return true
		}
		for _, sp := range rp.ScopeProfiles().All() {
			if _, found := sp.Scope().Attributes().Get(""); found {
				return true
			}
		}
	}
	return false
}

// marshalable returns pd itself or, if it is read-only, a copy: marshalling changes it.
func marshalable(pd pprofile.Profiles) pprofile.Profiles {
	if pd.IsReadOnly() {
		own := pprofile.NewProfiles()
		pd.CopyTo(own)
		pd = own
	}
	dictionary.KeepFirstString(pd.Dictionary().StringTable())
	return pd
}

// marshalPprof makes a record of each pprof: one for each set of sample types.
func marshalPprof(pd pprofile.Profiles, add func(record)) error {
	if err := dictionary.Check(pd); err != nil {
		return err
	}
	pd, err := dictionary.ResolveStrings(pd)
	if err != nil {
		return err
	}
	service := serviceOf(pd)
	var first error
	rejected := 0
	for p, err := range (pproftranslator.Marshaler{}).All(pd) {
		if err == nil && len(p.Sample) == 0 {
			add(record{converted: &p})
			continue
		}
		var data bytes.Buffer
		if err == nil {
			err = pproftranslator.WritePprof(&data, p.Profile)
		}
		if err != nil {
			rejected++
			if first == nil {
				first = err
			}
			continue
		}
		var types []sampletypes.Type
		for _, t := range p.SampleType {
			types = append(types, sampletypes.Type{Type: t.Type, Unit: t.Unit})
		}
		sp := pd.ResourceProfiles().At(p.Resource).ScopeProfiles().At(p.Scope)
		profileType := sampletypes.ProfileType(sp.Scope().Attributes(), types)
		r := record{
			data: data.Bytes(), samples: len(p.Sample), converted: &p,
			fileType: fileType(profileType, types, p.DefaultSampleType, p.PeriodType.Type),
		}
		for _, t := range types {
			r.summaries = append(r.summaries, recordfile.Summary{
				Key: recordfile.Key{Service: service, Type: profileType, SampleType: t.Type, Unit: t.Unit}, Total: recordfile.Total{Profiles: 1},
			})
		}
		add(r)
	}
	if rejected > 1 {
		return fmt.Errorf("%d pprofs rejected; first error: %w", rejected, first)
	}
	return first
}

// fileType returns the start of the name of a pprof file. pprof merges profiles that have a sample type in
// common and equal period types. So the profile type is followed by the default sample type (or the last
// one) and the period type, unless these are usual for it.
func fileType(profileType string, types []sampletypes.Type, sample, period string) string {
	has := func(name string) bool {
		return slices.ContainsFunc(types, func(t sampletypes.Type) bool { return t.Type == name })
	}
	if !has(sample) && len(types) > 0 {
		sample = types[len(types)-1].Type
	}
	profileType = cmp.Or(profileType, sample)
	usual, found := usualTypes[profileType]
	if !found {
		usual = [2]string{profileType, profileType}
	}
	if has(usual[0]) && period == usual[1] {
		return profileType
	}
	parts := []string{profileType}
	for _, part := range []string{sample, period} {
		if part != "" && part != parts[len(parts)-1] {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ".")
}

// usualTypes are a sample type and the period type of Go's profiles, unless both are named as the profile type.
var usualTypes = map[string][2]string{
	"heap":   {"inuse_space", "space"},
	"allocs": {"alloc_space", "space"},
	"mutex":  {"delay", "contentions"},
	"block":  {"delay", "contentions"},
	"delay":  {"delay", "contentions"}, // a mutex or block profile without a profile type
}

// serviceOf returns the name of the service in pd, of which no string is a reference. It is empty if there are
// several: a pprof does not say which of them it is from.
func serviceOf(pd pprofile.Profiles) (service string) {
	for _, rp := range pd.ResourceProfiles().All() {
		if value, found := rp.Resource().Attributes().Get(serviceName); found && value.AsString() != "" {
			if service != "" && service != value.AsString() {
				return ""
			}
			service = value.AsString()
		}
	}
	return service
}

const serviceName = "service.name"
