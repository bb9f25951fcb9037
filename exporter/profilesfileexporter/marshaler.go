// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"bytes"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// recordMarshaler makes the records of profiles, which it may change unless they are
// read-only, but for what they mean. The error is of what is no record; the others are
// added all the same.
type recordMarshaler interface {
	marshal(pd pprofile.Profiles, add func(record []byte, count segment.Count)) error
}

func marshalerOf(format string) recordMarshaler {
	switch format {
	case formatPprof:
		return pprofMarshaler{}
	case formatJSON:
		return otlpMarshaler{&pprofile.JSONMarshaler{}}
	default:
		return otlpMarshaler{&pprofile.ProtoMarshaler{}}
	}
}

// otlpMarshaler makes one record of all profiles.
type otlpMarshaler struct{ pprofile.Marshaler }

func (m otlpMarshaler) marshal(pd pprofile.Profiles, add func([]byte, segment.Count)) error {
	count := segment.Count{Profiles: pd.ProfileCount(), Samples: pd.SampleCount()}
	record, err := m.MarshalProfiles(withZeroString(pd))
	if err != nil {
		return err
	}
	add(record, count)
	return nil
}

// withZeroString returns profiles whose string table begins with the zero value:
// pd itself, unless its table is empty. Marshalling turns the strings of resources
// and scopes into references, and one to index 0 would read as no string.
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

// pprofMarshaler makes a record of each pprof: one for each set of sample types.
type pprofMarshaler struct{}

func (pprofMarshaler) marshal(pd pprofile.Profiles, add func([]byte, segment.Count)) error {
	var refused refusals
	for p, err := range (pproftranslator.Marshaler{}).All(pd) {
		var record bytes.Buffer
		if err == nil {
			err = p.WriteUncompressed(&record)
		}
		if err != nil {
			refused.add(reasonConvert, err)
			continue
		}
		if record.Len() > 0 {
			add(record.Bytes(), segment.Count{Profiles: len(p.SampleType), Samples: len(p.Sample)})
		}
	}
	return refused.err("pprofs")
}
