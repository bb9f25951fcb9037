// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"fmt"
	"maps"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// TypesError says that a result has profiles that one pprof cannot hold.
type TypesError struct {
	Of        string   // profile types or period types
	Parameter string   // that selects one: type or service
	Choices   []string // values of the parameter, each of which selects profiles that one pprof holds
}

func (e *TypesError) Error() string {
	of := e.Of
	if e.Parameter == "service" {
		of += ", in these services"
	}
	return "the selection has several " + of + ": " + several(e.Choices, "; ")
}

// kinds are the keys of Profiles, without their Snapshot.
type kinds struct {
	all     map[contents.Key]bool
	types   map[string]bool
	formats map[format]bool
}

// format is what all Profiles of one pprof have in common.
type format struct{ profileType, periodType, periodUnit string }

func formatOf(k *contents.Key) format { return format{k.Type, k.PeriodType, k.PeriodUnit} }

func newKinds() *kinds {
	return &kinds{map[contents.Key]bool{}, map[string]bool{}, map[format]bool{}}
}

// add adds the kinds of a payload.
func (ks *kinds) add(pd pprofile.Profiles) {
	text := func(i int32) string { return dictionary.ValidString(pd.Dictionary().StringTable(), i) }
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			k := contents.Key{
				Service: dictionary.TextOf(rp.Resource().Attributes(), serviceName),
				Type:    dictionary.TextOf(sp.Scope().Attributes(), attrkey.ProfileType),
			}
			for i, t := range sampletypes.Of(sp, text) {
				period := sp.Profiles().At(i).PeriodType()
				k.SampleType, k.Unit, k.PeriodType, k.PeriodUnit = t.Type, t.Unit, text(period.TypeStrindex()), text(period.UnitStrindex())
				ks.all[k], ks.types[k.Type], ks.formats[formatOf(&k)] = true, true, true
			}
		}
	}
}

// differ reports whether one pprof cannot hold all kinds.
func (ks *kinds) differ() bool { return len(ks.formats) > 1 }

// err returns a *TypesError if the kinds differ.
func (ks *kinds) err() error {
	switch {
	case len(ks.types) > 1:
		return ks.typesError("profile types", "type", "service")
	case ks.differ():
		return ks.typesError("period types", "service", "type")
	}
	return nil
}

// typesError tells kinds apart by the first parameter that selects each of them, or else by the first that selects some.
func (ks *kinds) typesError(of string, parameters ...string) error {
	var partly *TypesError
	for _, parameter := range parameters {
		chosen, all := ks.choices(parameter)
		e := &TypesError{of, parameter, chosen}
		if all {
			return e
		}
		if partly == nil && len(chosen) > 0 {
			partly = e
		}
	}
	if partly != nil {
		return partly
	}
	return fmt.Errorf("the selection has several %s; %s", of, narrow)
}

// choices returns values of a parameter each of which selects kinds that one pprof holds, and whether they select all.
func (ks *kinds) choices(parameter string) (chosen []string, all bool) {
	selected := map[string]map[format]bool{} // by value
	for k := range ks.all {
		for _, value := range valuesOf(&k, parameter) {
			if selected[value] == nil {
				selected[value] = map[format]bool{}
			}
			selected[value][formatOf(&k)] = true
		}
	}
	found, all := map[string]bool{}, true
	for k := range ks.all {
		values := valuesOf(&k, parameter)
		at := slices.IndexFunc(values, func(value string) bool { return value != "" && len(selected[value]) == 1 })
		if all = all && at >= 0; at >= 0 {
			found[values[at]] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), all
}

// valuesOf returns the values of a parameter that select k, those first that select more.
func valuesOf(k *contents.Key, parameter string) []string {
	if parameter == "service" {
		return []string{k.Service}
	}
	return []string{k.Type, k.Type + ":" + k.SampleType, TypeID(k), k.SampleType}
}
