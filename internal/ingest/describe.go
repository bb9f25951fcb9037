// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
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
		if err := in.divideByProfileType(r, resourceProfiles.ScopeProfiles()); err != nil {
			return err
		}
		for _, scopeProfiles := range resourceProfiles.ScopeProfiles().All() {
			if err := in.describeScope(r, resource, scopeProfiles, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// divideByProfileType sets the profile type of each scope, and divides scopes whose sample types have several: a pprof
// may hold CPU time, allocations and locks.
func (in *Ingester) divideByProfileType(r *Result, scopes pprofile.ScopeProfilesSlice) error {
	texts := r.Profiles.Dictionary().StringTable()
	for i := range scopes.Len() {
		scope, p := scopes.At(i), &r.payload
		if _, found := scope.Scope().Attributes().Get(attrkey.ProfileType); found {
			continue // of a recording
		}
		types := sampletypes.Of(scope, func(i int32) string { return texts.At(int(i)) })
		profileTypes := p.profileTypes(types)
		if len(types) == 0 || !slices.ContainsFunc(profileTypes, func(t string) bool { return t != profileTypes[0] }) {
			first := p.ProfileType
			if len(types) > 0 && (p.ProfileType != "" || p.ProfileTypeOf != nil) {
				first = profileTypes[0] // readers derive it from the sample types if no client states any
			}
			putProfileType(scope.Scope().Attributes(), first)
			continue
		}
		all, order := sampletypes.Read(scope.Scope().Attributes(), types)
		if all == nil {
			return fmt.Errorf("the sample types of a scope do not fit its %d Profiles", len(types))
		}
		divideScope(scopes, i, all, order, profileTypes)
	}
	return nil
}

// divideScope moves the Profiles of scopes[i] to one scope for each of their profile types. The first type stays.
func divideScope(scopes pprofile.ScopeProfilesSlice, i int, all []sampletypes.Type, order []int, profileTypes []string) {
	for _, profileType := range unique(profileTypes)[1:] {
		part, rest := scopes.AppendEmpty(), scopes.At(i)
		rest.Scope().CopyTo(part.Scope())
		part.SetSchemaUrl(rest.SchemaUrl())
		moved := make([]int, 0, len(order))
		number := -1
		rest.Profiles().RemoveIf(func(profile pprofile.Profile) bool {
			number++
			if profileTypes[number] != profileType {
				return false
			}
			profile.MoveTo(part.Profiles().AppendEmpty())
			moved = append(moved, number)
			return true
		})
		partOrder := make([]int, len(moved))
		for j, number := range moved {
			partOrder[j] = order[number]
		}
		order, profileTypes = without(order, moved), without(profileTypes, moved)
		sampletypes.Write(part.Scope().Attributes(), all, partOrder)
		putProfileType(part.Scope().Attributes(), profileType)
	}
	first := scopes.At(i).Scope().Attributes()
	sampletypes.Write(first, all, order)
	putProfileType(first, profileTypes[0])
}

// unique returns the different elements of s in their order.
func unique(s []string) (different []string) {
	for _, v := range s {
		if !slices.Contains(different, v) {
			different = append(different, v)
		}
	}
	return different
}

// without returns the elements of s whose index is not in indices, which ascend.
func without[E any](s []E, indices []int) (rest []E) {
	for i, v := range s {
		if _, found := slices.BinarySearch(indices, i); !found {
			rest = append(rest, v)
		}
	}
	return rest
}

func putProfileType(scope pcommon.Map, profileType string) {
	if profileType != "" {
		scope.PutStr(attrkey.ProfileType, profileType)
	}
}

// profileTypes returns the profile type of each sample type.
func (p *Payload) profileTypes(types []sampletypes.Type) []string {
	own := p.ProfileTypeOf
	if own == nil && p.ProfileType == "" {
		own = sampletypes.OwnProfileType
	}
	profileTypes := make([]string, len(types))
	mixed := false
	for i, t := range types {
		if own != nil {
			profileTypes[i] = own(t.Type)
		}
		mixed = mixed || profileTypes[i] != ""
	}
	rest := cmp.Or(p.ProfileType, sampletypes.ProfileType(pcommon.NewMap(), types))
	for i, t := range types {
		if profileTypes[i] == "" && (!mixed || p.ProfileType != "" || sampletypes.CountsSamples(t.Type)) {
			profileTypes[i] = rest
		}
	}
	return profileTypes
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
	PutStrings(scope.Attributes(), p.ScopeAttributes)
	var profileType string
	if v, found := scope.Attributes().Get(attrkey.ProfileType); found {
		profileType = v.AsString()
	}
	temporality := p.Temporality
	if temporality != nil && profiles.Len() > 0 && profiles.At(0).DurationNano() > 0 && onlyAllocations(types) {
		temporality = Deltas(temporality)
	}
	err := errors.Join(setProfileAttributes(dictionary, profiles, types, temporality, p), setPeriodType(dictionary, profiles, profileType))
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
