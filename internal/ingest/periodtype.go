// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
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
			if err := setValueType(names, t, known.name, known.unit); err != nil {
				return err
			}
		}
		if profile.Period() == 0 && names.At(int(t.TypeStrindex())) == known.name {
			profile.SetPeriod(1)
		}
	}
	return nil
}

func setValueType(strings pcommon.StringSlice, t pprofile.ValueType, name, unit string) error {
	i, err := pprofile.SetString(strings, name)
	if err != nil {
		return err
	}
	t.SetTypeStrindex(i)
	i, err = pprofile.SetString(strings, unit)
	t.SetUnitStrindex(i)
	return err
}
