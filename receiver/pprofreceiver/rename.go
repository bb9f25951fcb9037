// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// renameAttributes gives attributes of samples the names that OpenTelemetry has for
// them. It renames the strings of their keys in place. What cannot be renamed so
// keeps its name: where something else has the string too, and where the new name is
// there already, perhaps as another attribute of the same sample.
func renameAttributes(pd pprofile.Profiles, names map[string]string) {
	if len(names) == 0 {
		return
	}
	table := pd.Dictionary().StringTable()
	found := map[int32]string{} // new names, by the index of the old
	taken := map[string]bool{}
	for i, text := range table.All() {
		if to := names[text]; to != "" {
			found[int32(i)] = to
		}
		if isNewName(names, text) {
			taken[text] = true
		}
	}
	if len(found) == 0 {
		return
	}
	eachStringBesideKeys(pd, func(index int32) { delete(found, index) })
	for index, to := range found {
		if !taken[to] {
			table.SetAt(int(index), to)
		}
	}
}

func isNewName(names map[string]string, text string) bool {
	for _, to := range names {
		if text == to {
			return true
		}
	}
	return false
}

// eachStringBesideKeys calls use for each reference to a string that is not from the
// key of an attribute.
func eachStringBesideKeys(pd pprofile.Profiles, use func(index int32)) {
	dictionary := pd.Dictionary()
	for _, a := range dictionary.AttributeTable().All() {
		use(a.UnitStrindex())
	}
	for _, f := range dictionary.FunctionTable().All() {
		use(f.NameStrindex())
		use(f.SystemNameStrindex())
		use(f.FilenameStrindex())
	}
	for _, m := range dictionary.MappingTable().All() {
		use(m.FilenameStrindex())
	}
	for _, resourceProfiles := range pd.ResourceProfiles().All() {
		for _, scopeProfiles := range resourceProfiles.ScopeProfiles().All() {
			for _, p := range scopeProfiles.Profiles().All() {
				for _, v := range []pprofile.ValueType{p.SampleType(), p.PeriodType()} {
					use(v.TypeStrindex())
					use(v.UnitStrindex())
				}
			}
		}
	}
}
