// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
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
// Resource, scope and payload have their lengths with them, and attributes the order of their keys.
func setProfileIDs(resource pcommon.Map, scopeProfiles pprofile.ScopeProfiles, payload []byte, seen occurrences) error {
	scope := scopeProfiles.Scope()
	indices, _ := scope.Attributes().Get(sampletypes.OrderAttribute) // of the sample types: all translators set it
	order := indices.Slice()
	head := dictionary.AppendMap(make(dictionary.Value, 0, 512), resource)
	head = dictionary.AppendMap(head.AppendKey(scope.Name()).AppendKey(scope.Version()), scope.Attributes())
	common := sha256.New()
	common.Write(appendNumber(head, int64(len(payload))))
	common.Write(payload)
	for i, profile := range scopeProfiles.Profiles().All() {
		sum, err := common.(hash.Cloner).Clone()
		if err != nil {
			return err
		}
		tail := head[:0]
		for _, number := range []int64{order.At(i).Int(), int64(profile.Time()), int64(profile.DurationNano())} {
			tail = appendNumber(tail, number)
		}
		sum.Write(tail)
		equal := pprofile.ProfileID(sum.Sum(tail[:0])[:16])
		sum.Write(appendNumber(tail[:0], seen[equal]))
		seen[equal]++
		id := pprofile.ProfileID(sum.Sum(tail[:0])[:16])
		if id.IsEmpty() {
			id[len(id)-1] = 1 // all zero would mean no ID
		}
		profile.SetProfileID(id)
	}
	return nil
}

func appendNumber(to []byte, n int64) []byte { return binary.BigEndian.AppendUint64(to, uint64(n)) }
