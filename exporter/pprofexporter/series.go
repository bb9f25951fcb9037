// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofexporter

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzip"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// series is a pprof with the labels of its series.
type series struct {
	service     string
	profileType string  // as OTLP has it, such as cpu; may be empty
	name        string  // as the server has it, such as process_cpu
	labels      []label // sorted
	resource    pcommon.Map
	profile     *profile.Profile
	pprof       []byte // profile, gzipped
}

type label struct{ name, value string }

// Labels with a meaning for servers.
const (
	labelProfileName = "__name__"
	labelServiceName = "service_name"
	labelDelta       = "__delta__" // of Pyroscope: "false" if values are not cumulative
)

// spanLabels are the labels of a sample that Pyroscope reads as its span.
var spanLabels = [...]string{"span_id", "profile_id"}

// unknownService is OpenTelemetry's name for a service without a name.
const unknownService = "unknown_service"

var errNoValues = errors.New("no sample has a value or a timestamp: the sender may write OTLP from before v1.10, in which values have another place")

// newSeries makes the series of a pprof. err is why there is none.
func (e *pprofExporter) newSeries(pd pprofile.Profiles, c pproftranslator.Converted, err error) (*series, *failure) {
	if err != nil {
		return nil, &failure{error: err, reason: reasonConvert}
	}
	rp := pd.ResourceProfiles().At(c.Resource)
	sp := rp.ScopeProfiles().At(c.Scope)
	s := &series{resource: rp.Resource().Attributes(), profile: c.Profile}
	s.service = cmp.Or(dictionary.TextOf(s.resource, "service.name"), unknownService)
	var types []sampletypes.Type
	for _, t := range c.SampleType {
		types = append(types, sampletypes.Type{Type: t.Type, Unit: t.Unit})
	}
	s.profileType = sampletypes.ProfileType(sp.Scope().Attributes(), types)
	s.name = profileName(s.profileType, c.Profile, e.config.Protocol)
	if !hasValues(sp, c.Profiles) {
		return s, &failure{error: errNoValues, reason: reasonNoValues}
	}
	s.labels = e.labelsOf(s)
	if e.config.Protocol == protocolPyroscope {
		if delta := deltaLabel(pd, sp, c.Profiles, s.name); delta != "" {
			s.labels = append(s.labels, label{labelDelta, delta})
		}
		adaptToPyroscope(c.Profile)
	}
	slices.SortFunc(s.labels, func(a, b label) int { return strings.Compare(a.name, b.name) })
	complete(c.Profile, e.config.Protocol)
	if s.pprof, err = compressed(c.Profile); err != nil {
		return s, &failure{error: err, reason: reasonConvert}
	}
	return s, nil
}

// profileName returns the name that the clients of a server give to profiles.
func profileName(profileType string, p *profile.Profile, protocol string) string {
	name := labels.Name(sampletypes.SeriesName(profileType, p.PeriodType.Type, p.SampleType[len(p.SampleType)-1].Type))
	if name == "goroutines" && protocol == protocolParca {
		return "goroutine"
	}
	return name
}

// labelsOf returns the labels that are not about the type of a series. The servers treat an empty value as none.
func (e *pprofExporter) labelsOf(s *series) []label {
	all := []label{{labelProfileName, s.name}}
	add := func(attribute, name string) {
		if value := dictionary.TextOf(s.resource, attribute); name != "" && value != "" {
			all = append(all, label{name, value})
		}
	}
	for attribute, name := range e.config.Labels {
		add(attribute, name)
	}
	for _, attribute := range e.config.SampleLabels {
		add(attribute, labels.Name(attribute))
	}
	if !slices.ContainsFunc(all, func(l label) bool { return l.name == labelServiceName }) {
		all = append(all, label{labelServiceName, s.service})
	}
	return all
}

// deltaLabel is the value of labelDelta. Pyroscope subtracts the previous profile of a series if the values are
// cumulative. Without the label it does so for the allocations of a heap, and not for its memory in use.
func deltaLabel(pd pprofile.Profiles, sp pprofile.ScopeProfiles, profiles []int, name string) string {
	for _, i := range profiles {
		p := sp.Profiles().At(i)
		sampleType := dictionary.ValidString(pd.Dictionary().StringTable(), p.SampleType().TypeStrindex())
		temporality := sampletypes.TemporalityOf(pd.Dictionary(), p.AttributeIndices())
		switch {
		case name == "memory" && temporality == "" && p.DurationNano() == 0 && strings.HasPrefix(sampleType, "alloc_"):
			return "" // as Go writes them
		case temporality == sampletypes.Cumulative && name == "memory":
			return ""
		case temporality == sampletypes.Cumulative:
			return "true"
		}
	}
	return "false"
}

// adaptToPyroscope renames sample types that Pyroscope rejects, and removes the label that would make a series of each trace.
func adaptToPyroscope(p *profile.Profile) {
	for _, s := range p.Sample {
		delete(s.Label, "trace_id")
	}
	for _, t := range append(slices.Clone(p.SampleType), p.PeriodType) {
		t.Type, t.Unit = sampletypes.PyroscopeName(t.Type), sampletypes.PyroscopeName(t.Unit)
	}
	p.DefaultSampleType = sampletypes.PyroscopeName(p.DefaultSampleType)
}

// complete fills in the symbols of functions without a name, which servers show, a missing time and, for servers that make a part of the type ID of it, a missing period type: each
// unit of the last sample type counts.
func complete(p *profile.Profile, protocol string) {
	for _, f := range p.Function {
		f.Name = cmp.Or(f.Name, f.SystemName)
	}
	if p.TimeNanos <= 0 {
		p.TimeNanos = time.Now().UnixNano() - p.DurationNanos
	}
	if protocol != protocolHTTP && p.PeriodType.Type == "" {
		p.PeriodType, p.Period = p.SampleType[len(p.SampleType)-1], 1
	}
}

// hasValues reports whether a sample of the Profiles has a value or a timestamp.
func hasValues(sp pprofile.ScopeProfiles, profiles []int) bool {
	for _, i := range profiles {
		for _, s := range sp.Profiles().At(i).Samples().All() {
			if s.Values().Len() > 0 || s.TimestampsUnixNano().Len() > 0 {
				return true
			}
		}
	}
	return false
}

func compressed(p *profile.Profile) ([]byte, error) {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	err := errors.Join(pproftranslator.WritePprof(w, p), w.Close())
	return buf.Bytes(), err
}
