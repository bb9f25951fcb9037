// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// Fields of OTLP messages.
const (
	resourceProfilesField = 1 // of ProfilesData
	dictionaryField       = 2
	resourceField         = 1 // of ResourceProfiles
	stringTableField      = 5 // of ProfilesDictionary
)

// Parts yields the record, or if it takes too much memory when it is decoded, parts of it that do not: each is a payload
// of its own with the dictionary and some services. All Profiles of a service are in one part, so that sums are those of
// the record. Services that select does not accept may be left out; nil accepts all. An *Error names a service that
// takes too much memory, or concerns all.
func (r *Record) Parts(selects func(service string) bool) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		tooLarge := r.Fits(1)
		if tooLarge == nil || r.Encoding != OTLPProto {
			yield(r, tooLarge)
			return
		}
		dict, services := r.services()
		if services == nil {
			yield(nil, tooLarge)
			return
		}
		limit, dictSize := r.options.maxDecoded(), decodedSize(dict)
		part, size := slices.Clone(dict), dictSize
		for _, s := range services {
			if selects != nil && !selects(s.name) {
				continue
			}
			added := decodedSize(s.data)
			if dictSize+added > limit {
				err := fmt.Errorf("service %q: its part of the record takes about %s of memory, more than %s: %s",
					s.name, mebibytes(dictSize+added), mebibytes(limit), r.options.raise())
				if !yield(nil, &Error{File: r.File, Record: r.Number, Offset: r.Offset, Services: []string{s.name}, Err: err}) {
					return
				}
				continue
			}
			if size+added > limit {
				if !yield(r.part(part), nil) {
					return
				}
				part, size = slices.Clone(dict), dictSize
			}
			part, size = append(part, s.data...), size+added
		}
		if len(part) > len(dict) {
			yield(r.part(part), nil)
		}
	}
}

// part returns a part of the record.
func (r *Record) part(data []byte) *Record {
	p := *r
	p.Data, p.size = data, 0
	return &p
}

// decodedSize estimates the memory of a message that Fits has accepted.
func decodedSize(message []byte) int64 {
	var m wire.Meter
	_, _ = m.Write(message)
	return m.Size
}

// service is the part of a message that belongs to a service: fields of ProfilesData.
type service struct {
	name string
	data []byte
}

// services divides the message into the dictionary and services, in their order. They are nil if the message is malformed,
// or the names take too much memory.
func (r *Record) services() (dict []byte, services []service) {
	var names []byte // a payload of the resources, with the strings that they may refer to
	var resources [][]byte
	for fields := wire.New(r.Data); ; {
		start := fields.At
		if !fields.Next() {
			break
		}
		content := fields.Message()
		switch fields.Field {
		case dictionaryField:
			dict = append(dict, r.Data[start:fields.At]...)
			names = appendOnly(names, dictionaryField, content, stringTableField)
		case resourceProfilesField:
			resources = append(resources, r.Data[start:fields.At])
			names = appendOnly(names, resourceProfilesField, content, resourceField)
		}
	}
	named, err := r.part(names).Profiles()
	if err == nil {
		named, err = dictionary.ResolveStrings(named)
	}
	if err != nil || named.ResourceProfiles().Len() != len(resources) {
		return nil, nil
	}
	places := map[string]int{}
	for i, rp := range named.ResourceProfiles().All() {
		name := ""
		if value, found := rp.Resource().Attributes().Get("service.name"); found {
			name = value.AsString()
		}
		place, known := places[name]
		if !known {
			place = len(services)
			places[name] = place
			services = append(services, service{name: name})
		}
		services[place].data = append(services[place].data, resources[i]...)
	}
	return dict, services
}

// appendOnly appends a field with those fields of its message that have a number.
func appendOnly(to []byte, field int, message wire.Cursor, number int) []byte {
	var kept []byte
	for {
		start := message.At
		if !message.Next() {
			break
		}
		if message.Field == uint64(number) {
			kept = append(kept, message.Data[start:message.At]...)
		}
	}
	to = binary.AppendUvarint(append(to, byte(field<<3|wire.BytesType)), uint64(len(kept)))
	return append(to, kept...)
}
