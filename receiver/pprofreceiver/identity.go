// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// identify sets the profile_id of each Profile of a scope: the first 16 bytes of
// SHA-256 over resource, scope, payload and the index of the sample type in the
// payload. The same payload of the same resource has the same ids, whenever and
// however compressed it is sent.
//
// Each part is written with its length before it, 8 bytes big-endian, and
// attributes in order of their keys. A time that the payload lacks and the way in
// has given, span, counts as a part of it: without one, equal readings of two
// moments would be one. Where the sample types make several Profiles
// each (of samples with and without timestamps), these are numbered.
func identify(resource pcommon.Map, scopeProfiles pprofile.ScopeProfiles, payload []byte, span timeSpan) error {
	if scopeProfiles.Profiles().Len() == 0 {
		return nil
	}
	sampleTypes, err := sampleTypeOrder(scopeProfiles)
	if err != nil {
		return err
	}
	scope := scopeProfiles.Scope()
	head := appendAttributes(nil, resource)
	head = appendString(head, scope.Name())
	head = appendString(head, scope.Version())
	head = appendAttributes(head, scope.Attributes())
	head = appendNumber(head, int64(len(payload)))
	common := sha256.New()
	common.Write(head)
	common.Write(payload)
	if span != (timeSpan{}) {
		common.Write(appendNumber(appendNumber(nil, int64(span.from)), int64(span.until)))
	}

	seen := make(map[int64]int64, len(sampleTypes))
	for i, profile := range scopeProfiles.Profiles().All() {
		clone, err := common.(hash.Cloner).Clone()
		if err != nil {
			return err
		}
		index := sampleTypes[i%len(sampleTypes)]
		clone.Write(appendNumber(appendNumber(head[:0], index), seen[index]))
		seen[index]++
		id := pprofile.ProfileID(clone.Sum(head[:0])[:16])
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

// appendAttributes writes attributes in order of their keys.
func appendAttributes(to []byte, attributes pcommon.Map) []byte {
	type attribute struct {
		key   string
		value pcommon.Value
	}
	sorted := make([]attribute, 0, attributes.Len())
	for key, value := range attributes.All() {
		sorted = append(sorted, attribute{key, value})
	}
	slices.SortFunc(sorted, func(a, b attribute) int { return strings.Compare(a.key, b.key) })
	to = appendNumber(to, int64(len(sorted)))
	for _, a := range sorted {
		to = appendString(to, a.key)
		to = appendNumber(to, int64(a.value.Type()))
		to = appendString(to, a.value.AsString())
	}
	return to
}

func appendString(to []byte, s string) []byte { return append(appendNumber(to, int64(len(s))), s...) }

func appendNumber(to []byte, n int64) []byte { return binary.BigEndian.AppendUint64(to, uint64(n)) }
