// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import "go.opentelemetry.io/collector/pdata/pprofile"

// Joiner moves parts of payloads into one payload, whose dictionary has the entries that they refer to, in order of first use. Scopes and
// Profiles stay as many as they were, with the same meaning.
type Joiner struct {
	translator

	to pprofile.Profiles
}

// NewJoiner returns a Joiner without payloads.
func NewJoiner() *Joiner {
	return &Joiner{newTranslator(), pprofile.NewProfiles()}
}

// Add moves parts out of pd, which must have passed Check, and have no string references in its attribute table. The error is ErrFull.
func (j *Joiner) Add(pd pprofile.Profiles, parts []Part) error {
	j.remap.Reset(pd.Dictionary(), j.tables)
	for _, part := range parts {
		rp := j.to.ResourceProfiles().AppendEmpty()
		part.moveTo(rp, pd.ResourceProfiles().At(part.Resource))
		j.resource(rp)
	}
	j.remap.Forget()
	return j.tables.Err()
}

func (p *Part) moveTo(to, from pprofile.ResourceProfiles) {
	if p.Scopes == nil {
		from.MoveTo(to)
		return
	}
	from.Resource().CopyTo(to.Resource())
	to.SetSchemaUrl(from.SchemaUrl())
	for _, i := range p.Scopes {
		from.ScopeProfiles().At(i).MoveTo(to.ScopeProfiles().AppendEmpty())
	}
}

// TablesSize is about the memory in bytes that the dictionary takes in pdata.
func (j *Joiner) TablesSize() int { return j.tables.OutputSize() + j.tables.StringsOutputSize() }

// WireSize is about the most bytes that the dictionary takes as a message.
func (j *Joiner) WireSize() int { return j.tables.OutputSize()*3/4 + j.tables.StringsOutputSize() }

// Take returns the payload and starts another one.
func (j *Joiner) Take() pprofile.Profiles {
	taken := j.to
	j.tables.Write(taken.Dictionary())
	j.tables.Reset()
	j.to = pprofile.NewProfiles()
	return taken
}
