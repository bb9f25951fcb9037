// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// codec is an encoding of OTLP.
type codec interface {
	pprofile.Marshaler
	pprofile.Unmarshaler
}

type protoCodec struct {
	pprofile.ProtoMarshaler
	pprofile.ProtoUnmarshaler
}

type jsonCodec struct {
	pprofile.JSONMarshaler
	pprofile.JSONUnmarshaler
}

// marshal returns the record of a payload. It hides the strings of resources and scopes, unless pd is read-only: pdata makes
// references of them.
func marshal(m pprofile.Marshaler, pd pprofile.Profiles) (recordfile.Record, error) {
	if pd.IsReadOnly() {
		own := pprofile.NewProfiles()
		pd.CopyTo(own)
		pd = own
	}
	return archive.Marshal(m, pd)
}

// showStrings undoes what marshal does to the attributes of pd, for a retry. data is the record.
func showStrings(u pprofile.Unmarshaler, pd pprofile.Profiles, data []byte) {
	if pd.IsReadOnly() {
		return
	}
	read, err := u.UnmarshalProfiles(data)
	if err != nil {
		return // pdata still marshals the references
	}
	for i, rp := range pd.ResourceProfiles().All() {
		of := read.ResourceProfiles().At(i)
		of.Resource().Attributes().MoveTo(rp.Resource().Attributes())
		for j, sp := range rp.ScopeProfiles().All() {
			of.ScopeProfiles().At(j).Scope().Attributes().MoveTo(sp.Scope().Attributes())
		}
	}
}
