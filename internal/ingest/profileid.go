// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"maps"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

const attributeSampleTypeOrder = "pprof.scope.sample_type_order"

// setProfileIDs sets the profile_id of each Profile of a scope: the first 16 bytes of
// SHA-256 over resource, scope, payload and the index of the sample type in the
// payload. So a payload that is sent again gets the same IDs, however compressed.
//
// Each part is preceded by its length, 8 bytes big-endian, and attributes are in order
// of their keys. A time that the payload lacks and the sender gave counts as well:
// otherwise equal snapshots of two moments would share an ID. Profiles of one sample
// type (with and without timestamps) are numbered.
func setProfileIDs(resource pcommon.Map, scopeProfiles pprofile.ScopeProfiles, payload []byte, given TimeRange) error {
	if scopeProfiles.Profiles().Len() == 0 {
		return nil
	}
	scope := scopeProfiles.Scope()
	value, ok := scope.Attributes().Get(attributeSampleTypeOrder) // the translator sets it
	if !ok || value.Type() != pcommon.ValueTypeSlice || value.Slice().Len() == 0 {
		return fmt.Errorf("%s: want the indices of the sample types", attributeSampleTypeOrder)
	}
	order := value.Slice()
	head := appendAttributes(nil, resource)
	head = appendString(head, scope.Name())
	head = appendString(head, scope.Version())
	head = appendAttributes(head, scope.Attributes())
	head = appendNumber(head, int64(len(payload)))
	common := sha256.New()
	common.Write(head)
	common.Write(payload)
	if given != (TimeRange{}) {
		common.Write(appendNumber(appendNumber(nil, int64(given.Start)), int64(given.End)))
	}
	seen := make(map[int64]int64, order.Len())
	for i, profile := range scopeProfiles.Profiles().All() {
		sum, err := common.(hash.Cloner).Clone()
		if err != nil {
			return err
		}
		index := order.At(i % order.Len()).Int()
		sum.Write(appendNumber(appendNumber(head[:0], index), seen[index]))
		seen[index]++
		id := pprofile.ProfileID(sum.Sum(head[:0])[:16])
		if id.IsEmpty() {
			id[len(id)-1] = 1 // all zero would mean no ID
		}
		profile.SetProfileID(id)
	}
	return nil
}

// appendAttributes appends attributes in order of their keys.
func appendAttributes(to []byte, attributes pcommon.Map) []byte {
	values := maps.Collect(attributes.All())
	to = appendNumber(to, int64(len(values)))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		to = appendString(to, key)
		to = appendNumber(to, int64(values[key].Type()))
		to = appendString(to, values[key].AsString())
	}
	return to
}

func appendString(to []byte, s string) []byte { return append(appendNumber(to, int64(len(s))), s...) }

func appendNumber(to []byte, n int64) []byte { return binary.BigEndian.AppendUint64(to, uint64(n)) }
