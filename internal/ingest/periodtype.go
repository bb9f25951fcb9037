// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// periodTypes are the period types of profile types whose period is known: each event is
// recorded, or each value stands for all events. They are those that Go writes.
// Grafana Pyroscope rejects profiles without a period type or a period. That of CPU and
// wall time is the sampling interval, which only the sender knows.
var periodTypes = map[string]struct{ name, unit string }{
	ProfileTypeHeap:         {"space", "bytes"},
	ProfileTypeAllocs:       {"space", "bytes"},
	ProfileTypeGoroutine:    {"goroutine", "count"},
	ProfileTypeThreadCreate: {"threadcreate", "count"},
	ProfileTypeMutex:        {"contentions", "count"},
	ProfileTypeBlock:        {"contentions", "count"},
}

// setPeriodType fills in a missing period type and a missing period of 1, if the profile
// type says what they are. It changes no other.
func setPeriodType(dictionary pprofile.ProfilesDictionary, profiles pprofile.ProfilesSlice, profileType string) error {
	known, ok := periodTypes[profileType]
	if !ok {
		return nil
	}
	names := dictionary.StringTable()
	for _, profile := range profiles.All() {
		t := profile.PeriodType()
		if names.At(int(t.TypeStrindex())) == "" && names.At(int(t.UnitStrindex())) == "" {
			name, err := pprofile.SetString(names, known.name)
			if err != nil {
				return err
			}
			unit, err := pprofile.SetString(names, known.unit)
			if err != nil {
				return err
			}
			t.SetTypeStrindex(name)
			t.SetUnitStrindex(unit)
		}
		if profile.Period() == 0 && names.At(int(t.TypeStrindex())) == known.name {
			profile.SetPeriod(1)
		}
	}
	return nil
}
