// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// attributeTemporality is the attribute of a Profile that says whether its values
// may be added up over time.
const attributeTemporality = "profile.temporality"

// temporality is a value of profile.temporality.
type temporality string

const (
	temporalityUnknown    temporality = ""
	temporalityDelta      temporality = "delta"      // over an interval; intervals may be summed
	temporalityCumulative temporality = "cumulative" // since the process began; a reading
	temporalityInstant    temporality = "instant"    // at one moment; a reading
)

// always is the temporality of a kind whose sample types all have the same.
func always(t temporality) func(string) temporality {
	return func(string) temporality { return t }
}

// heapTemporality is that of Go's heap and allocs profiles.
func heapTemporality(sampleType string) temporality {
	switch {
	case strings.HasPrefix(sampleType, "alloc_"):
		return temporalityCumulative
	case strings.HasPrefix(sampleType, "inuse_"):
		return temporalityInstant
	}
	return temporalityUnknown
}

// setTemporality puts the attribute on each Profile whose temporality is known.
// Entries that the dictionary does not have yet are added at its ends.
func setTemporality(dictionary pprofile.ProfilesDictionary, profiles pprofile.ProfilesSlice, of func(string) temporality) error {
	table := dictionary.StringTable()
	for i, profile := range profiles.All() {
		sampleType := profile.SampleType().TypeStrindex()
		if sampleType < 0 || int(sampleType) >= table.Len() {
			return fmt.Errorf("profile %d: sample type %d of %d strings", i, sampleType, table.Len())
		}
		value := of(table.At(int(sampleType)))
		if value == temporalityUnknown {
			continue
		}
		key, err := pprofile.SetString(table, attributeTemporality)
		if err != nil {
			return err
		}
		attribute := pprofile.NewKeyValueAndUnit()
		attribute.SetKeyStrindex(key)
		attribute.Value().SetStr(string(value))
		index, err := pprofile.SetAttribute(dictionary.AttributeTable(), attribute)
		if err != nil {
			return err
		}
		profile.AttributeIndices().Append(index)
	}
	return nil
}
