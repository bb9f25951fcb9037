// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// occurrences counts the Profiles of a request that are equal in everything but their
// occurrence number.
type occurrences map[pprofile.ProfileID]int64

// setProfileIDs sets the profile_id of each Profile of a scope: the first 16 bytes of
// SHA-256 over resource, scope, payload, the index of the sample type in the payload, time,
// duration and occurrence number. So a payload that is sent again gets the same IDs, however
// compressed. Equal payloads of one request get different ones, and so do Profiles of one
// sample type (with and without timestamps).
//
// Resource, scope and payload are preceded by their lengths, 8 bytes big-endian, and
// attributes are in order of their keys.
func setProfileIDs(resource pcommon.Map, scopeProfiles pprofile.ScopeProfiles, payload []byte, seen occurrences) error {
	if scopeProfiles.Profiles().Len() == 0 {
		return nil
	}
	scope := scopeProfiles.Scope()
	value, ok := scope.Attributes().Get(sampletypes.OrderAttribute) // the translator sets it
	if !ok || value.Type() != pcommon.ValueTypeSlice || value.Slice().Len() != scopeProfiles.Profiles().Len() {
		return fmt.Errorf("%s: want the indices of the sample types", sampletypes.OrderAttribute)
	}
	order := value.Slice()
	head := appendAttributes(make([]byte, 0, 512), resource)
	head = appendString(head, scope.Name())
	head = appendString(head, scope.Version())
	head = appendAttributes(head, scope.Attributes())
	head = appendNumber(head, int64(len(payload)))
	common := sha256.New()
	common.Write(head)
	common.Write(payload)
	for i, profile := range scopeProfiles.Profiles().All() {
		sum, err := common.(hash.Cloner).Clone()
		if err != nil {
			return err
		}
		index := order.At(i).Int()
		sum.Write(appendNumber(appendNumber(appendNumber(head[:0], index), int64(profile.Time())), int64(profile.DurationNano())))
		equal := firstBytes(sum)
		sum.Write(appendNumber(head[:0], seen[equal]))
		seen[equal]++
		id := firstBytes(sum)
		if id.IsEmpty() {
			id[len(id)-1] = 1 // all zero would mean no ID
		}
		profile.SetProfileID(id)
	}
	return nil
}

func firstBytes(sum hash.Hash) pprofile.ProfileID {
	var to [sha256.Size]byte
	return pprofile.ProfileID(sum.Sum(to[:0])[:16])
}

// appendAttributes appends attributes in order of their keys.
func appendAttributes(to []byte, attributes pcommon.Map) []byte {
	entries := sortedEntries(attributes)
	to = appendNumber(to, int64(len(entries)))
	for _, e := range entries {
		to = appendString(to, e.key)
		to = appendNumber(to, int64(e.value.Type()))
		to = appendString(to, e.value.AsString())
	}
	return to
}

func appendString(to []byte, s string) []byte { return append(appendNumber(to, int64(len(s))), s...) }

func appendNumber(to []byte, n int64) []byte { return binary.BigEndian.AppendUint64(to, uint64(n)) }
