// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Attribute values and keys may be references into the string table. pdata shows these
// as empty values and empty keys; it resolves them only when it unmarshals, and only in
// resources and scopes. Marshalling turns all strings of a resource into references, so
// that a payload that has been marshalled has them, too.

// ResolveStrings returns pd itself or, if there are string references in it
// that pdata shows as empty, a copy without them. pd must have passed Check; it is
// only read. A reference outside the string table is a *IndexError. Many references to one long string
// are an error, too.
func ResolveStrings(pd pprofile.Profiles) (pprofile.Profiles, error) {
	hidden := collect(pd)
	if hidden == (pcommon.Slice{}) {
		return pd, nil
	}
	references, err := read(hidden)
	if err != nil || !slices.ContainsFunc(references, reference.isOne) {
		return pd, err
	}
	resolved := pprofile.NewProfiles()
	pd.CopyTo(resolved)
	r := resolver{
		strings: pd.Dictionary().StringTable(), references: references,
		room: minText + maxExpansion*(&pprofile.ProtoMarshaler{}).ProfilesSize(pd),
	}
	r.walker = walker{value: r.resolveValue, keys: r.resolveKeys}
	r.payload(resolved)
	return resolved, r.err
}

// firstAttribute is the index of the first attribute of d that may have a reference. At 0 is usually the zero value: no
// reference is looked for if it has neither key nor unit. Otherwise each payload would have to be searched.
func firstAttribute(d pprofile.ProfilesDictionary) int {
	if d.AttributeTable().Len() == 0 {
		return 0
	}
	a, text := d.AttributeTable().At(0), d.StringTable()
	if ValidString(text, a.KeyStrindex()) == "" && ValidString(text, a.UnitStrindex()) == "" && a.Value().Type() == pcommon.ValueTypeEmpty {
		return 1
	}
	return 0
}

// collect copies all that may be or hold a reference, in the order of a walker. It makes no slice if there is none.
func collect(pd pprofile.Profiles) (hidden pcommon.Slice) {
	add := func() pcommon.Value {
		if hidden == (pcommon.Slice{}) {
			hidden = pcommon.NewSlice()
		}
		return hidden.AppendEmpty()
	}
	w := walker{
		value: func(v pcommon.Value) { v.CopyTo(add()) },
		keys: func(m pcommon.Map) {
			keys := add().SetEmptyMap()
			m.CopyTo(keys)
			for _, v := range keys.All() {
				v.SetBool(false) // only the keys matter
			}
		},
	}
	w.payload(pd)
	return hidden
}

// walker calls value for each value that reads as empty, and keys for each map that has an empty key, after its
// values.
type walker struct {
	value func(v pcommon.Value)
	keys  func(m pcommon.Map)

	attribute, resource, scope int // indices of the place; -1 for none
}

func (w *walker) payload(pd pprofile.Profiles) {
	table := pd.Dictionary().AttributeTable()
	w.resource, w.scope = -1, -1
	for w.attribute = firstAttribute(pd.Dictionary()); w.attribute < table.Len(); w.attribute++ {
		w.inValue(table.At(w.attribute).Value())
	}
	for i, rp := range pd.ResourceProfiles().All() {
		w.resource, w.scope = i, -1
		w.inMap(rp.Resource().Attributes())
		for j, sp := range rp.ScopeProfiles().All() {
			w.scope = j
			w.inMap(sp.Scope().Attributes())
		}
	}
}

func (w *walker) inValue(v pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeEmpty:
		w.value(v)
	case pcommon.ValueTypeSlice:
		for _, e := range v.Slice().All() {
			w.inValue(e)
		}
	case pcommon.ValueTypeMap:
		w.inMap(v.Map())
	}
}

func (w *walker) inMap(m pcommon.Map) {
	for _, v := range m.All() {
		w.inValue(v)
	}
	if _, found := m.Get(""); found {
		w.keys(m)
	}
}

// place is the path to the value or the map of the walk.
func (w *walker) place() string {
	switch {
	case w.resource < 0:
		return fmt.Sprintf("attribute_table[%d].value", w.attribute)
	case w.scope < 0:
		return fmt.Sprintf("resource_profiles[%d].resource.attributes", w.resource)
	default:
		return fmt.Sprintf("resource_profiles[%d].scope_profiles[%d].scope.attributes", w.resource, w.scope)
	}
}

// reference is a value of collect in OTLP/JSON.
type reference struct {
	Value  *int32 `json:"stringValueStrindex"` // nil if it is empty
	KVList struct {
		Values []keyReference `json:"values"`
	} `json:"kvlistValue"`
}

type keyReference struct {
	Key int32 `json:"keyStrindex"`
}

// isOne reports whether r refers to a string.
func (r reference) isOne() bool {
	return r.Value != nil || slices.ContainsFunc(r.KVList.Values, func(v keyReference) bool { return v.Key != 0 })
}

// read returns the references of values, which it takes over, all at once: pdata shows them in JSON only.
func read(values pcommon.Slice) ([]reference, error) {
	n := values.Len()
	holder := pprofile.NewProfiles()
	values.MoveAndAppendTo(holder.ResourceProfiles().AppendEmpty().Resource().Attributes().PutEmptySlice("v"))
	text, err := (&pprofile.JSONMarshaler{}).MarshalProfiles(holder)
	var all struct {
		ResourceProfiles []struct {
			Resource struct {
				Attributes []struct {
					Value struct {
						Array struct {
							Values []reference `json:"values"`
						} `json:"arrayValue"`
					} `json:"value"`
				} `json:"attributes"`
			} `json:"resource"`
		} `json:"resourceProfiles"`
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("string references cannot be read: %w", err)
	}
	if len(all.ResourceProfiles) == 1 && len(all.ResourceProfiles[0].Resource.Attributes) == 1 {
		if found := all.ResourceProfiles[0].Resource.Attributes[0].Value.Array.Values; len(found) == n {
			return found, nil
		}
	}
	return nil, fmt.Errorf("string references cannot be read: want %d values", n)
}

// resolver sets the text of references, in the order of a walker.
type resolver struct {
	walker
	strings    pcommon.StringSlice
	references []reference // that are still to come
	room       int         // bytes of text that the references may still have
	err        error
}

// The text of all references may be maxExpansion times the size of the payload, and minText more. Attributes
// of resources take 5 to 10 times their references. More is from a payload made for that: others hold the
// text of each attribute as their own.
const (
	maxExpansion = 32
	minText      = 16 << 20
)

func (r *resolver) next() reference {
	n := r.references[0]
	r.references = r.references[1:]
	return n
}

func (r *resolver) resolveValue(v pcommon.Value) {
	if index := r.next().Value; index != nil {
		v.SetStr(r.text(*index))
	}
}

// resolveKeys makes m anew, as keys cannot be set.
func (r *resolver) resolveKeys(m pcommon.Map) {
	keys, i := r.next(), 0
	resolved := pcommon.NewMap()
	for key, v := range m.All() {
		if key == "" {
			key = r.text(keys.KVList.Values[i].Key)
		}
		v.CopyTo(resolved.PutEmpty(key))
		i++
	}
	resolved.MoveTo(m)
}

func (r *resolver) text(index int32) string {
	if index == 0 {
		return ""
	}
	if index < 0 || int(index) >= r.strings.Len() {
		if r.err == nil {
			r.err = &IndexError{Where: "a string reference in " + r.place(), Index: index, Table: "string", Len: r.strings.Len()}
		}
		return ""
	}
	text := r.strings.At(int(index))
	if r.room -= len(text); r.room < 0 {
		if r.err == nil {
			r.err = fmt.Errorf("the string references up to %s have more than %d times as many bytes of text as the payload", r.place(), maxExpansion)
		}
		return ""
	}
	return text
}
