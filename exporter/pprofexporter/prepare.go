// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofexporter

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
)

// prepare returns pd as the servers of the protocol can store it, or a copy. It does not change pd.
//
//   - The attributes that SampleLabels lists move from the samples to the resource: each combination of their values gets a
//     resource of its own.
//   - Pyroscope makes a series of each other label, so that samples keep only those of their span, which is that of
//     their link if they have one.
//   - Pyroscope and Parca have no timestamps of samples: the values of equal samples are summed.
//
// What prepare returns, it returns again if it is called with it.
func prepare(pd pprofile.Profiles, c *Config) (pprofile.Profiles, error) {
	if err := dictionary.Check(pd); err != nil {
		return pd, err
	}
	pd, err := dictionary.ResolveStrings(pd)
	if err != nil || c.Protocol == protocolHTTP && len(c.SampleLabels) == 0 {
		return pd, err
	}
	prepared := pprofile.NewProfiles()
	pd.Dictionary().CopyTo(prepared.Dictionary())
	uses := usesOf(pd.Dictionary(), c)
	for _, rp := range pd.ResourceProfiles().All() {
		parts := parts{to: prepared.ResourceProfiles(), empty: withoutSamples(rp), byValues: map[string]pprofile.ResourceProfiles{}}
		for j, sp := range rp.ScopeProfiles().All() {
			for k, p := range sp.Profiles().All() {
				for _, sample := range p.Samples().All() {
					values, kept := split(sample, uses, c)
					s := parts.of(c.SampleLabels, values).ScopeProfiles().At(j).Profiles().At(k).Samples().AppendEmpty()
					sample.CopyTo(s)
					s.AttributeIndices().FromRaw(kept)
					if c.Protocol != protocolHTTP {
						dropTimestamps(s)
					}
				}
			}
		}
	}
	return prepared, nil
}

// parts are those of a resource by the values of sample labels.
type parts struct {
	to       pprofile.ResourceProfilesSlice
	empty    pprofile.ResourceProfiles // the resource without samples
	byValues map[string]pprofile.ResourceProfiles
}

// of returns the part with the values of keys, which may be new.
func (p *parts) of(keys, values []string) pprofile.ResourceProfiles {
	key := strings.Join(values, "\x00")
	part, found := p.byValues[key]
	if !found {
		part = p.to.AppendEmpty()
		p.empty.CopyTo(part)
		for i, value := range values {
			if value != "" {
				part.Resource().Attributes().PutStr(keys[i], value)
			}
		}
		p.byValues[key] = part
	}
	return part
}

// split returns the values of the sample labels of s, and the attributes that it keeps.
func split(s pprofile.Sample, uses []use, c *Config) (values []string, kept []int32) {
	values = make([]string, len(c.SampleLabels))
	for _, i := range s.AttributeIndices().All() {
		switch a := uses[i]; {
		case a.label >= 0:
			values[a.label] = a.value
		case a.kept && (c.Protocol != protocolPyroscope || s.LinkIndex() == 0):
			kept = append(kept, i)
		}
	}
	return values, kept
}

// use says what becomes of an attribute of samples.
type use struct {
	label int    // number of the sample label that it is a value of, or -1
	value string // of the label
	kept  bool   // by the samples
}

// usesOf returns those of all attributes. Index 0 is valid without an entry, too.
func usesOf(dict pprofile.ProfilesDictionary, c *Config) []use {
	uses := make([]use, 0, 1+dict.AttributeTable().Len())
	for _, attribute := range dict.AttributeTable().All() {
		key := dictionary.ValidString(dict.StringTable(), attribute.KeyStrindex())
		isKept := c.Protocol != protocolPyroscope || slices.Contains(spanLabels[:], key)
		uses = append(uses, use{slices.Index(c.SampleLabels, key), textOf(attribute.Value()), isKept})
	}
	return append(uses, use{label: -1})
}

func withoutSamples(rp pprofile.ResourceProfiles) pprofile.ResourceProfiles {
	empty := pprofile.NewResourceProfiles()
	rp.CopyTo(empty)
	for _, sp := range empty.ScopeProfiles().All() {
		for _, p := range sp.Profiles().All() {
			p.Samples().RemoveIf(func(pprofile.Sample) bool { return true })
		}
	}
	return empty
}

// dropTimestamps leaves the sum of the values; a timestamp without a value counts 1.
func dropTimestamps(s pprofile.Sample) {
	if n := s.TimestampsUnixNano().Len(); n > 0 && s.Values().Len() == 0 {
		s.Values().Append(int64(n))
	}
	s.TimestampsUnixNano().FromRaw(nil)
}

func textOf(v pcommon.Value) string { return dictionary.ValidUTF8(v.AsString()) }
