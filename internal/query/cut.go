// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// Field numbers of OTLP profiles.
const (
	resourceProfilesField = 1 // of ProfilesData
	dictionaryField       = 2
	scopeProfilesField    = 2 // of ResourceProfiles
	profilesField         = 2 // of ScopeProfiles
	sampleTypeField       = 1 // of Profile
	samplesField          = 2
	timeField             = 3
	typeField             = 1 // of ValueType
	timestampsField       = 5 // of Sample
	stringsField          = 5 // of ProfilesDictionary
)

// Tags of one byte, whose lowest three bits are the wire type.
const (
	samplesTag = samplesField<<3 | wire.BytesType
	unknownTag = 15<<3 | wire.BytesType // of a field that no message has
)

// maxCut bounds the size in bytes of a record that is copied, which is three times that of most of those that take segment.MaxRecordMemory.
const maxCut = 4 << 20

// withoutUnselected returns a record of a store without samples that the filter would remove, which are most of a record of an hour, of several sample types:
// to skip them takes a tenth of the time of decoding them. The record is not changed: the other one has its data in scratch until the next call. entry is
// nil if it is not known.
func (s *Selection) withoutUnselected(ctx context.Context, record *archive.Record, entry *contents.Entry, scratch *[]byte) *archive.Record {
	if record.Encoding != archive.OTLPProto || entry == nil || entry.Incomplete {
		return record
	}
	var wanted, unwanted []string // sample types
	inRange := true
	for i := range entry.Summaries {
		of := &entry.Summaries[i]
		inRange = inRange && s.contains(of.Start) && s.contains(of.Latest)
		switch {
		case slices.Contains(wanted, of.SampleType):
		case s.MatchesKey(ctx, &of.Key):
			wanted = append(wanted, of.SampleType)
		case !slices.Contains(unwanted, of.SampleType):
			unwanted = append(unwanted, of.SampleType)
		}
	}
	unwanted = slices.DeleteFunc(unwanted, func(name string) bool { return slices.Contains(wanted, name) })
	if len(unwanted) == 0 && inRange || len(record.Data) > maxCut {
		return record
	}
	cut := *record
	cut.Data = append((*scratch)[:0], record.Data...)
	*scratch = cut.Data
	cutSamples(cut.Data, unwanted, s.contains)
	return &cut
}

// cutSamples makes samples of a ProfilesData message ones of a field that decoders skip: all of the Profiles of unwanted sample types, and
// those without timestamps of Profiles that do not start in the range. It stops at what is malformed.
func cutSamples(message []byte, unwanted []string, contains func(uint64) bool) {
	isUnwanted := indicesOf(message, unwanted)
	resources, resource, scope, profile := wire.New(message), wire.New(message), wire.New(message), wire.New(message)
	for resources.NextOf(resourceProfilesField, &resource) {
		for resource.NextOf(scopeProfilesField, &scope) {
			for scope.NextOf(profilesField, &profile) {
				cutProfile(profile, isUnwanted, contains)
			}
		}
	}
}

// indicesOf returns which indices of the string table are those of some strings, nil if none is.
func indicesOf(message []byte, texts []string) map[uint64]bool {
	if len(texts) == 0 {
		return nil
	}
	found, n := map[uint64]bool{}, uint64(0)
	top, dictionary, text := wire.New(message), wire.New(message), wire.New(message)
	for top.NextOf(dictionaryField, &dictionary) {
		for dictionary.NextOf(stringsField, &text) {
			if slices.Contains(texts, string(message[text.At:text.End])) {
				found[n] = true
			}
			n++
		}
	}
	return found
}

func cutProfile(profile wire.Cursor, isUnwanted map[uint64]bool, contains func(uint64) bool) {
	sampleType, start := uint64(0), uint64(0)
	header := profile
	for header.Next() {
		switch {
		case header.Field == sampleTypeField && header.Type == wire.BytesType:
			for of := header.Message(); of.Next(); {
				if of.Field == typeField {
					sampleType = of.Value
				}
			}
		case header.Field == timeField && header.Stop-header.Start == 8:
			start = binary.LittleEndian.Uint64(header.Data[header.Start:])
		}
	}
	all := isUnwanted[sampleType]
	if header.Err != nil || !all && contains(start) {
		return
	}
	for tag := profile.At; profile.Next(); tag = profile.At {
		if profile.Data[tag] == samplesTag && (all || !hasTimestamps(profile.Message())) {
			profile.Data[tag] = unknownTag
		}
	}
}

func hasTimestamps(sample wire.Cursor) bool {
	for sample.Next() {
		if sample.Field == timestampsField {
			return true
		}
	}
	return sample.Err != nil
}
