// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"bytes"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary/stringref"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// record is what is written at once.
type record struct {
	data      []byte // nil for a pprof without samples, which is not written
	fileType  string // starts the name of a pprof file
	summary   segment.Summary
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
		return marshalOTLP(&pprofile.JSONMarshaler{})
	default:
		return marshalOTLP(&pprofile.ProtoMarshaler{})
	}
}

// marshalOTLP makes one record of all profiles.
func marshalOTLP(m pprofile.Marshaler) marshalFunc {
	return func(pd pprofile.Profiles, add func(record)) error {
		summary := summarize(pd)
		data, err := m.MarshalProfiles(withZeroString(pd))
		if err != nil {
			return err
		}
		add(record{data: data, summary: summary})
		return nil
	}
}

// withZeroString returns profiles whose string table starts with the zero value: pd
// itself, unless its table is empty. Marshalling turns the strings of resources and scopes
// into references, and one to index 0 would be read as no string.
func withZeroString(pd pprofile.Profiles) pprofile.Profiles {
	if pd.Dictionary().StringTable().Len() > 0 {
		return pd
	}
	if pd.IsReadOnly() {
		own := pprofile.NewProfiles()
		pd.CopyTo(own)
		pd = own
	}
	pd.Dictionary().StringTable().Append("")
	return pd
}

// marshalPprof makes a record of each pprof: one for each set of sample types.
func marshalPprof(pd pprofile.Profiles, add func(record)) error {
	if err := dictionary.Check(pd); err != nil {
		return err
	}
	pd, err := stringref.Resolve(pd)
	if err != nil {
		return err
	}
	services := summarize(pd).Services
	if len(services) > 1 {
		services = nil // a pprof does not say which of them it is from
	}
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
		summary := segment.Summary{Profiles: len(p.SampleType), Samples: len(p.Sample), Services: services}
		var types []sampletypes.Type
		for _, t := range p.SampleType {
			types = append(types, sampletypes.Type{Type: t.Type, Unit: t.Unit})
			summary.SampleTypes = append(summary.SampleTypes, t.Type)
		}
		summary.ProfileTypes = profileTypes(pd.ResourceProfiles().At(p.Resource).ScopeProfiles().At(p.Scope), types)
		add(record{data: data.Bytes(), fileType: fileType(summary, p.DefaultSampleType), summary: summary, converted: &p})
	}
	if rejected > 1 {
		return fmt.Errorf("%d pprofs rejected; first error: %w", rejected, first)
	}
	return first
}

// fileType returns the profile type of a pprof or, if it has none, its default sample type: the
// last one, unless it names another.
func fileType(of segment.Summary, defaultSampleType string) string {
	switch {
	case len(of.ProfileTypes) > 0:
		return of.ProfileTypes[0]
	case defaultSampleType != "" || len(of.SampleTypes) == 0:
		return defaultSampleType
	default:
		return of.SampleTypes[len(of.SampleTypes)-1]
	}
}

// profileTypes returns the profile type of a scope, or nothing.
func profileTypes(sp pprofile.ScopeProfiles, types []sampletypes.Type) []string {
	if profileType := sampletypes.ProfileType(sp.Scope().Attributes(), types); profileType != "" {
		return []string{profileType}
	}
	return nil
}

// summarize describes profiles for the logs.
func summarize(pd pprofile.Profiles) segment.Summary {
	var summary segment.Summary
	texts := pd.Dictionary().StringTable()
	for _, rp := range pd.ResourceProfiles().All() {
		var of segment.Summary
		if service, found := rp.Resource().Attributes().Get(serviceName); found {
			of.Services = []string{service.AsString()}
		}
		for _, sp := range rp.ScopeProfiles().All() {
			of.Profiles += sp.Profiles().Len()
			types := sampletypes.Of(sp, func(i int32) string { return dictionary.Text(texts, i) })
			of.ProfileTypes = append(of.ProfileTypes, profileTypes(sp, types)...)
			for i, p := range sp.Profiles().All() {
				of.Samples += p.Samples().Len()
				if types[i].Type != "" {
					of.SampleTypes = append(of.SampleTypes, types[i].Type)
				}
			}
		}
		summary.Add(of)
	}
	return summary
}

const serviceName = "service.name"
