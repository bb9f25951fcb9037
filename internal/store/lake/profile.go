// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// Profile is what the rows of a Profile have in common, in both tables.
type Profile struct {
	Service    string `parquet:"service,dict"`
	Type       string `parquet:"type,dict"` // of the profile, such as heap
	SampleType string `parquet:"sample_type,dict"`
	Unit       string `parquet:"unit,dict"`
	PeriodType string `parquet:"period_type,dict"`
	PeriodUnit string `parquet:"period_unit,dict"`
	Period     int64  `parquet:"period"`
	// Snapshot is set if values are a state, which must not be summed over time.
	Snapshot bool `parquet:"snapshot"`
	// Temporality is what the source states: delta, cumulative, instant; null if it states none.
	Temporality string `parquet:"temporality,optional,dict"`

	ResourceAttributes map[string]string `parquet:"resource_attributes" parquet-key:",dict" parquet-value:",dict"`
}

// payload visits the Profiles of a payload.
type payload struct {
	dict     pprofile.ProfilesDictionary
	resource uint64 // hash of the resource
	common   Profile
}

func (p *payload) text(i int32) string { return dictionary.ValidString(p.dict.StringTable(), i) }

// each calls visit with each Profile of a valid payload without string references, after it has set what its rows have in common.
func (p *payload) each(pd pprofile.Profiles, visit func(pprofile.Profile) error) error {
	p.dict = pd.Dictionary()
	for _, rp := range pd.ResourceProfiles().All() {
		p.resource = processes.HashResource(rp.Resource().Attributes())
		p.common.ResourceAttributes = textsOf(rp.Resource().Attributes())
		p.common.Service = p.common.ResourceAttributes["service.name"]
		for _, sp := range rp.ScopeProfiles().All() {
			types := sampletypes.Of(sp, p.text)
			p.common.Type = dictionary.ValidUTF8(sampletypes.ProfileType(sp.Scope().Attributes(), types))
			for i, profile := range sp.Profiles().All() {
				p.setProfile(profile, types[i])
				if err := visit(profile); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (p *payload) setProfile(profile pprofile.Profile, t sampletypes.Type) {
	p.common.SampleType, p.common.Unit = t.Type, t.Unit
	p.common.PeriodType, p.common.PeriodUnit = p.text(profile.PeriodType().TypeStrindex()), p.text(profile.PeriodType().UnitStrindex())
	p.common.Period = profile.Period()
	p.common.Snapshot = sampletypes.IsSnapshot(p.dict, profile, sampletypes.SnapshotSampleTypes)
	p.common.Temporality = dictionary.ValidUTF8(sampletypes.TemporalityOf(p.dict, profile.AttributeIndices()))
}

// addAttributes adds attributes of the Profile or of a sample, but the table of processes, which is the second table.
func (p *payload) addAttributes(texts map[string]string, indices []int32) {
	for _, i := range indices {
		if i == 0 {
			continue // no attribute
		}
		a := p.dict.AttributeTable().At(int(i))
		if key := p.text(a.KeyStrindex()); key != attrkey.Processes {
			texts[key] = dictionary.ValidUTF8(a.Value().AsString())
		}
	}
}

func textsOf(attributes pcommon.Map) map[string]string {
	texts := make(map[string]string, attributes.Len())
	for key, value := range attributes.All() {
		texts[dictionary.ValidUTF8(key)] = dictionary.ValidUTF8(value.AsString())
	}
	return texts
}

// nanoseconds returns a time or duration that an int64 holds.
func nanoseconds(t uint64) int64 { return int64(min(t, math.MaxInt64)) }
