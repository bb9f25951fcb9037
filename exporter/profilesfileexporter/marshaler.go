// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary/check"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary/stringref"
	"github.com/otelcol-profiles/otelcol-profiles/internal/fileindex"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordstore"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// record is what is written at once.
type record struct {
	data      []byte // nil for a pprof without samples, which is not written
	fileType  string // starts the name of a pprof file
	summary   recordstore.Summary
	summaries []fileindex.Summary        // nil for a file without an index
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
		pd = marshalable(pd)
		data, err := m.MarshalProfiles(pd)
		if err != nil {
			return err
		}
		summarizer := summarizers.Get().(*archive.Summarizer)
		defer summarizers.Put(summarizer)
		defer summarizer.Release()
		message := data
		if _, isProto := m.(*pprofile.ProtoMarshaler); !isProto {
			if message, err = (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd); err != nil {
				return err
			}
		}
		summaries, err := summarizer.Summarize(pd, message)
		r := record{data: data, summary: summarize(pd, summaries)}
		if err == nil { // else readers reject it
			r.summaries = summaries
		}
		add(r)
		return nil
	}
}

// summarizers keeps what a payload needs for the next one.
var summarizers = sync.Pool{New: func() any { return new(archive.Summarizer) }}

// marshalable returns pd itself or, if it is read-only, a copy: marshalling turns the strings of resources and
// scopes into references. Its string table starts with the zero value, because a reference to index 0 would be
// read as no string.
func marshalable(pd pprofile.Profiles) pprofile.Profiles {
	if pd.IsReadOnly() {
		own := pprofile.NewProfiles()
		pd.CopyTo(own)
		pd = own
	}
	if texts := pd.Dictionary().StringTable(); texts.Len() == 0 {
		texts.Append("")
	}
	return pd
}

// marshalPprof makes a record of each pprof: one for each set of sample types.
func marshalPprof(pd pprofile.Profiles, add func(record)) error {
	if err := check.Profiles(pd); err != nil {
		return err
	}
	pd, err := stringref.Resolve(pd)
	if err != nil {
		return err
	}
	services := serviceNames(pd)
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
		summary := recordstore.Summary{Profiles: len(p.SampleType), Samples: len(p.Sample), Services: services}
		var types []sampletypes.Type
		for _, t := range p.SampleType {
			types = append(types, sampletypes.Type{Type: t.Type, Unit: t.Unit})
			summary.SampleTypes = append(summary.SampleTypes, t.Type)
		}
		sp := pd.ResourceProfiles().At(p.Resource).ScopeProfiles().At(p.Scope)
		profileType := sampletypes.ProfileType(sp.Scope().Attributes(), types)
		summary.ProfileTypes = unlessEmpty(profileType)
		name := fileType(profileType, summary.SampleTypes, p.DefaultSampleType, p.PeriodType.Type)
		add(record{data: data.Bytes(), fileType: name, summary: summary, converted: &p})
	}
	if rejected > 1 {
		return fmt.Errorf("%d pprofs rejected; first error: %w", rejected, first)
	}
	return first
}

// fileType returns the start of the name of a pprof file. pprof merges profiles that have a sample type in
// common and equal period types. So the profile type is followed by the default sample type (or the last
// one) and the period type, unless these are usual for it.
func fileType(profileType string, samples []string, sample, period string) string {
	if !slices.Contains(samples, sample) && len(samples) > 0 {
		sample = samples[len(samples)-1]
	}
	profileType = cmp.Or(profileType, sample)
	usual, found := usualTypes[profileType]
	if !found {
		usual = [2]string{profileType, profileType}
	}
	if slices.Contains(samples, usual[0]) && period == usual[1] {
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

// summarize describes profiles for the logs.
func summarize(pd pprofile.Profiles, summaries []fileindex.Summary) recordstore.Summary {
	logged := recordstore.Summary{Samples: pd.SampleCount()}
	for i := range summaries {
		s := &summaries[i]
		logged.Profiles += s.Profiles
		logged.AddNames(s.Service, s.Type, s.SampleType)
	}
	return logged
}

// serviceNames returns the names of the services in pd, of which no string is a reference.
func serviceNames(pd pprofile.Profiles) []string {
	var all recordstore.Summary
	for _, rp := range pd.ResourceProfiles().All() {
		if service, found := rp.Resource().Attributes().Get(serviceName); found {
			all.Add(recordstore.Summary{Services: unlessEmpty(service.AsString())})
		}
	}
	return all.Services
}

func unlessEmpty(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

const serviceName = "service.name"
