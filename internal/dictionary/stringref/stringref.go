// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package stringref makes visible what pdata hides: attribute keys and values that are
// references into the string table.
package stringref

import (
	"encoding/json"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// Attribute values and keys may be references into the string table. pdata shows these
// as empty values and empty keys; it resolves them only when it unmarshals, and only in
// resources and scopes. Marshalling turns all strings of a resource into references, so
// that a payload that has been marshalled has them, too.

// Resolve returns pd itself or, if there are string references in it
// that pdata shows as empty, a copy without them. pd must have passed dictionary.Check; it is
// only read. A reference outside the string table is a *dictionary.IndexError.
func Resolve(pd pprofile.Profiles) (pprofile.Profiles, error) {
	if !hasReferences(pd) {
		return pd, nil
	}
	resolved := pprofile.NewProfiles()
	pd.CopyTo(resolved)
	r := resolver{strings: pd.Dictionary().StringTable()}
	for i, a := range resolved.Dictionary().AttributeTable().All() {
		r.place = fmt.Sprintf("attribute_table[%d].value", i)
		v := pcommon.NewValueEmpty()
		r.value(v, a.Value())
		v.CopyTo(a.Value())
	}
	for i, rp := range resolved.ResourceProfiles().All() {
		r.place = fmt.Sprintf("resource_profiles[%d].resource.attributes", i)
		r.replace(rp.Resource().Attributes())
		for j, sp := range rp.ScopeProfiles().All() {
			r.place = fmt.Sprintf("resource_profiles[%d].scope_profiles[%d].scope.attributes", i, j)
			r.replace(sp.Scope().Attributes())
		}
	}
	return resolved, r.err
}

// hasReferences returns whether pd has a reference, or an empty key, which may be one.
func hasReferences(pd pprofile.Profiles) bool {
	for _, a := range pd.Dictionary().AttributeTable().All() {
		if hasReference(a.Value()) {
			return true
		}
	}
	for _, rp := range pd.ResourceProfiles().All() {
		if mapHasReference(rp.Resource().Attributes()) {
			return true
		}
		for _, sp := range rp.ScopeProfiles().All() {
			if mapHasReference(sp.Scope().Attributes()) {
				return true
			}
		}
	}
	return false
}

func hasReference(v pcommon.Value) bool {
	switch v.Type() {
	case pcommon.ValueTypeEmpty:
		return isReference(v)
	case pcommon.ValueTypeSlice:
		for _, e := range v.Slice().All() {
			if hasReference(e) {
				return true
			}
		}
	case pcommon.ValueTypeMap:
		return mapHasReference(v.Map())
	}
	return false
}

func mapHasReference(m pcommon.Map) bool {
	for key, v := range m.All() {
		if key == "" || hasReference(v) {
			return true
		}
	}
	return false
}

// isReference returns whether v, which reads as the empty value, is larger than that.
func isReference(v pcommon.Value) bool { return sizeOfValue(v) > sizeOfEmpty }

var sizeOfEmpty = sizeOfValue(pcommon.NewValueEmpty())

// sizeOfValue is the size of a message that holds v alone, in bytes.
func sizeOfValue(v pcommon.Value) int {
	holder := pprofile.NewProfiles()
	v.CopyTo(holder.ResourceProfiles().AppendEmpty().Resource().Attributes().PutEmpty("v"))
	return (&pprofile.ProtoMarshaler{}).ProfilesSize(holder)
}

// resolver copies values with strings in place of references.
type resolver struct {
	strings pcommon.StringSlice
	place   string
	err     error
}

func (r *resolver) replace(m pcommon.Map) {
	if mapHasReference(m) {
		resolved := pcommon.NewMap()
		r.attributes(resolved, m)
		resolved.CopyTo(m)
	}
}

func (r *resolver) value(dst, v pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeEmpty:
		if isReference(v) {
			holder := pcommon.NewMap()
			v.CopyTo(holder.PutEmpty("v"))
			dst.SetStr(r.text(r.indices(holder)[0].Value.StringValueStrindex))
		}
	case pcommon.ValueTypeSlice:
		s := dst.SetEmptySlice()
		for _, e := range v.Slice().All() {
			r.value(s.AppendEmpty(), e)
		}
	case pcommon.ValueTypeMap:
		r.attributes(dst.SetEmptyMap(), v.Map())
	default:
		v.CopyTo(dst)
	}
}

func (r *resolver) attributes(dst, m pcommon.Map) {
	var indices []keyValueIndices
	i := 0
	for key, v := range m.All() {
		if key == "" {
			if indices == nil {
				indices = r.indices(m)
			}
			key = r.text(indices[i].KeyStrindex)
		}
		r.value(dst.PutEmpty(key), v)
		i++
	}
}

func (r *resolver) text(index int32) string {
	if index == 0 {
		return ""
	}
	if index < 0 || int(index) >= r.strings.Len() {
		if r.err == nil {
			r.err = &dictionary.IndexError{Where: "a string reference in " + r.place, Index: index, Table: "string", Len: r.strings.Len()}
		}
		return ""
	}
	return r.strings.At(int(index))
}

// keyValueIndices are the references of an attribute in OTLP/JSON.
type keyValueIndices struct {
	KeyStrindex int32 `json:"keyStrindex"`
	Value       struct {
		StringValueStrindex int32 `json:"stringValueStrindex"`
	} `json:"value"`
}

// indices returns the references of m, entry by entry. Only those of entries without a
// key or a value matter: marshalling turns the others into references, too.
func (r *resolver) indices(m pcommon.Map) []keyValueIndices {
	var read struct {
		ResourceProfiles []struct {
			Resource struct {
				Attributes []keyValueIndices `json:"attributes"`
			} `json:"resource"`
		} `json:"resourceProfiles"`
	}
	holder := pprofile.NewProfiles()
	m.CopyTo(holder.ResourceProfiles().AppendEmpty().Resource().Attributes())
	text, err := (&pprofile.JSONMarshaler{}).MarshalProfiles(holder)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err == nil && len(read.ResourceProfiles) == 1 && len(read.ResourceProfiles[0].Resource.Attributes) == m.Len() {
		return read.ResourceProfiles[0].Resource.Attributes
	}
	if r.err == nil {
		r.err = fmt.Errorf("%s: its string references cannot be read: %w", r.place, err)
	}
	return make([]keyValueIndices, m.Len())
}
