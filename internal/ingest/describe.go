// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"errors"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// describe writes the sender's information to resources, scopes and Profiles.
func (in *Ingester) describe(r *Result, seen occurrences) error {
	renameAttributes(r.Profiles, r.payload.AttributeNames)
	for _, resourceProfiles := range r.Profiles.ResourceProfiles().All() {
		resource := resourceProfiles.Resource().Attributes()
		for key, value := range r.payload.Resource.All() {
			value.CopyTo(resource.PutEmpty(key))
		}
		r.service, r.unnamed = setServiceName(resource)
		for _, scopeProfiles := range resourceProfiles.ScopeProfiles().All() {
			if err := in.describeScope(r, resource, scopeProfiles, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *Ingester) describeScope(r *Result, resource pcommon.Map, scopeProfiles pprofile.ScopeProfiles, seen occurrences) error {
	p, dictionary := &r.payload, r.Profiles.Dictionary()
	scope, profiles := scopeProfiles.Scope(), scopeProfiles.Profiles()
	scope.SetName(in.settings.ScopeName)
	scope.SetVersion(in.settings.Version)
	types := make([]string, 0, profiles.Len()) // names of the sample types
	for _, profile := range profiles.All() {
		types = append(types, dictionary.StringTable().At(int(profile.SampleType().TypeStrindex())))
	}
	profileType := p.ProfileType
	if profileType == "" && p.ProfileTypeOf != nil {
		profileType = p.ProfileTypeOf(types)
	}
	if profileType != "" {
		scope.Attributes().PutStr(sampletypes.ProfileTypeAttribute, profileType)
	}
	PutStrings(scope.Attributes(), p.ScopeAttributes)
	err := errors.Join(setProfileAttributes(dictionary, profiles, types, p), setPeriodType(dictionary, profiles, profileType))
	if err != nil || profiles.Len() == 0 {
		return err
	}
	r.outside += p.fillTimes(profiles, types)
	r.start = profiles.At(0).Time()
	return setProfileIDs(resource, scopeProfiles, p.Data, seen)
}

// periodTypes are the period types of profile types whose period is known: each event is
// recorded, or each value stands for all events. They are those that Go writes.
// Grafana Pyroscope rejects profiles without a period type or a period. That of CPU and
// wall time is the sampling interval, which only the sender knows.
var periodTypes = map[string]struct{ name, unit string }{
	ProfileTypeHeap:          {"space", "bytes"},
	ProfileTypeAllocs:        {"space", "bytes"},
	ProfileTypeGoroutine:     {"goroutine", "count"},
	ProfileTypeGoroutineLeak: {"goroutineleak", "count"},
	ProfileTypeThreadCreate:  {"threadcreate", "count"},
	ProfileTypeMutex:         {"contentions", "count"},
	ProfileTypeBlock:         {"contentions", "count"},
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
