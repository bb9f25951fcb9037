// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// identify sets the profile_id of each Profile of a scope: the first 16 bytes of
// SHA-256 over resource, scope, payload and the index of the sample type in the
// payload. The same payload of the same resource has the same ids, whenever and
// however compressed it is sent.
//
// Each part is written with its length before it, 8 bytes big-endian, and
// attributes in order of their keys. Where the sample types make several Profiles
// each (of samples with and without timestamps), these are numbered.
func identify(resource pcommon.Map, scopeProfiles pprofile.ScopeProfiles, payload []byte) error {
	scope := scopeProfiles.Scope()
	common := sha256.New()
	writeAttributes(common, resource)
	writeString(common, scope.Name())
	writeString(common, scope.Version())
	writeAttributes(common, scope.Attributes())
	writeNumber(common, int64(len(payload)))
	common.Write(payload)

	if scopeProfiles.Profiles().Len() == 0 {
		return nil
	}
	sampleTypes, err := sampleTypeOrder(scopeProfiles)
	if err != nil {
		return err
	}
	seen := make(map[int64]int64, len(sampleTypes))
	for i, profile := range scopeProfiles.Profiles().All() {
		clone, err := common.(hash.Cloner).Clone()
		if err != nil {
			return err
		}
		index := sampleTypes[i%len(sampleTypes)]
		writeNumber(clone, index)
		writeNumber(clone, seen[index])
		seen[index]++
		id := pprofile.ProfileID(clone.Sum(nil)[:16])
		if id.IsEmpty() {
			id[len(id)-1] = 1 // all zero would mean no id
		}
		profile.SetProfileID(id)
	}
	return nil
}

// sampleTypeOrder returns the index in the payload of each sample type, in the
// order of the Profiles, as the translator noted it.
func sampleTypeOrder(scopeProfiles pprofile.ScopeProfiles) ([]int64, error) {
	profiles := scopeProfiles.Profiles().Len()
	value, ok := scopeProfiles.Scope().Attributes().Get(attributeSampleTypeOrder)
	if !ok || value.Type() != pcommon.ValueTypeSlice || value.Slice().Len() == 0 || profiles%value.Slice().Len() != 0 {
		return nil, fmt.Errorf("%s: want an index for each sample type of %d profiles", attributeSampleTypeOrder, profiles)
	}
	order := make([]int64, 0, value.Slice().Len())
	for _, element := range value.Slice().All() {
		order = append(order, element.Int())
	}
	return order, nil
}

func writeAttributes(w io.Writer, attributes pcommon.Map) {
	values := make(map[string]pcommon.Value, attributes.Len())
	for key, value := range attributes.All() {
		values[key] = value
	}
	writeNumber(w, int64(len(values)))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		writeString(w, key)
		writeNumber(w, int64(values[key].Type()))
		writeString(w, values[key].AsString())
	}
}

func writeString(w io.Writer, s string) {
	writeNumber(w, int64(len(s)))
	io.WriteString(w, s) //nolint:errcheck // a hash never fails
}

func writeNumber(w io.Writer, n int64) {
	w.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) //nolint:errcheck // a hash never fails
}
