// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import "go.opentelemetry.io/collector/pdata/pprofile"

// Joiner moves payloads into one, whose dictionary has the entries that they refer to, in order of first use. Resources, scopes and Profiles
// stay as many as they were, with the same meaning.
type Joiner struct {
	translator

	to pprofile.Profiles
}

// NewJoiner returns a Joiner without payloads.
func NewJoiner() *Joiner {
	return &Joiner{newTranslator(), pprofile.NewProfiles()}
}

// Add moves all resources out of pd, which must have passed Check, and have no string references in its attribute table. The error is ErrFull.
func (j *Joiner) Add(pd pprofile.Profiles) error {
	j.remap.Reset(pd.Dictionary(), j.tables)
	for _, rp := range pd.ResourceProfiles().All() {
		j.resource(rp)
	}
	pd.ResourceProfiles().MoveAndAppendTo(j.to.ResourceProfiles())
	j.remap.Forget()
	return j.tables.Err()
}

// TablesSize is about the memory in bytes that the dictionary takes in pdata.
func (j *Joiner) TablesSize() int { return j.tables.OutputSize() + j.tables.StringsOutputSize() }

// Take returns the payload and starts another one.
func (j *Joiner) Take() pprofile.Profiles {
	taken := j.to
	j.tables.Write(taken.Dictionary())
	j.tables.Reset()
	j.to = pprofile.NewProfiles()
	return taken
}
