// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary/entry"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/validutf8"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// attributes are those of a resource or scope.
type attributes struct {
	pairs        []pair
	schema, name string // not the version of a scope, which an upgrade of the Collector changes
	hash         uint64 // 0 until it is needed
}

func (a *attributes) reset(schema string) { *a = attributes{pairs: a.pairs[:0], schema: schema} }

// pair is a message KeyValue; from start to stop of the payload is its value, a message AnyValue.
type pair struct {
	key         string
	start, stop int
}

// Fields of AnyValue. Marshalling makes references into the string table of all strings.
const (
	stringValue     = 1
	doubleValue     = 4
	arrayValue      = 5
	listValue       = 6
	stringReference = 8
)

var errDepth = fmt.Errorf("an attribute nests deeper than %d levels", entry.MaxDepth)

// Fields of attributes in the messages Resource and InstrumentationScope.
const (
	resourceAttributes = 1
	scopeAttributes    = 3
)

// readAttributes reads the n attributes in the first field of a message ResourceProfiles or ScopeProfiles, from start
// to stop.
func (s *Summarizer) readAttributes(a *attributes, n, start, stop int, field uint64) {
	outer := wire.Cursor{Data: s.message, At: start, End: stop}
	message, inner := wire.New(s.message), wire.New(s.message)
	for n > 0 && s.next(&outer) {
		if outer.Field != 1 {
			continue
		}
		for message.Enter(&outer); s.next(&message); {
			if message.Field != field {
				continue
			}
			n--
			inner.Enter(&message)
			p := s.pair(&inner)
			if p.start < p.stop {
				first := s.message[p.start] >> 3
				if nested := first == arrayValue || first == listValue; nested && s.nests(s.valueOf(&p), entry.MaxDepth) {
					s.err = errDepth // readers reject it
					continue
				}
			}
			a.pairs = append(a.pairs, p)
		}
	}
}

// nests reports whether a value nests deeper than depth levels.
func (s *Summarizer) nests(value wire.Cursor, depth int) bool {
	for s.next(&value) {
		if value.Field != arrayValue && value.Field != listValue {
			continue
		}
		for list := value.Message(); s.next(&list); {
			element := list.Message()
			if value.Field == listValue {
				p := s.pair(&element)
				element = s.valueOf(&p)
			}
			if depth == 0 || s.nests(element, depth-1) {
				return true
			}
		}
	}
	return false
}

// pair reads a message KeyValue.
func (s *Summarizer) pair(fields *wire.Cursor) (p pair) {
	for s.next(fields) {
		switch fields.Field {
		case 1:
			p.key = string(fields.Data[fields.Start:fields.Stop])
		case 2:
			p.start, p.stop = fields.Start, fields.Stop
		case 3:
			if p.key == "" {
				p.key = s.reference(fields.Value)
			}
		}
	}
	return p
}

func (s *Summarizer) valueOf(p *pair) wire.Cursor {
	return wire.Cursor{Data: s.message, At: p.start, End: p.stop}
}

// reference returns the string at a place of the string table.
func (s *Summarizer) reference(i uint64) string {
	if i >= uint64(s.strings.Len()) {
		s.err = errors.New("a string reference leads out of the string table")
		return ""
	}
	return s.strings.At(int(i))
}

// attribute returns the attribute with this key as text.
func (s *Summarizer) attribute(a *attributes, key string) (text string, found bool) {
	for i := range a.pairs {
		if p := &a.pairs[i]; p.key == key {
			return validutf8.Repair(s.textOf(s.valueOf(p))), true
		}
	}
	return "", false
}

// textOf returns a value as pdata writes it as text.
func (s *Summarizer) textOf(value wire.Cursor) string {
	content := value.Data[value.At:value.End]
	for s.next(&value) {
		switch value.Field {
		case stringValue:
			return string(value.Bytes())
		case stringReference:
			return s.reference(value.Value)
		}
	}
	// A payload with this attribute and all strings.
	var message []byte
	for _, field := range []byte{2, 1, 1, 1} { // value of an attribute, attribute, resource, ResourceProfiles
		content = append(binary.AppendUvarint([]byte{field<<3 | wire.BytesType}, uint64(len(content))), content...)
	}
	message = append(message, content...)
	texts := pprofile.NewProfiles()
	s.strings.CopyTo(texts.Dictionary().StringTable())
	table, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(texts)
	if err != nil {
		s.err = err
		return ""
	}
	one, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(append(message, table...))
	if err != nil {
		s.err = err
		return ""
	}
	for _, v := range one.ResourceProfiles().At(0).Resource().Attributes().All() {
		return v.AsString()
	}
	return ""
}

// hashOf returns the same hash for equal attributes in any order. Those of scopes that are derived from the
// Profiles do not count.
func (s *Summarizer) hashOf(a *attributes) uint64 {
	if a.hash != 0 {
		return a.hash
	}
	a.hash = mix(hashText(a.schema), hashText(a.name))
	for i := range a.pairs {
		switch p := &a.pairs[i]; p.key {
		case sampletypes.ProfileTypeAttribute, sampletypes.OrderAttribute, sampletypes.ListAttribute:
		default:
			a.hash += mix(hashText(p.key), s.hashValue(s.valueOf(p)))
		}
	}
	return a.hash
}

// hashValue returns the same hash for equal values, also if one has references for strings.
func (s *Summarizer) hashValue(value wire.Cursor) (hash uint64) {
	for s.next(&value) {
		switch value.Field {
		case stringValue:
			hash = mix(stringValue, hashText(string(value.Bytes())))
		case stringReference:
			hash = mix(stringValue, hashText(s.reference(value.Value)))
		case doubleValue:
			if math.Float64frombits(value.Value) == 0 {
				value.Value = 0 // -0.0
			}
			hash = mix(doubleValue, value.Value)
		case arrayValue:
			hash = arrayValue
			for list := value.Message(); s.next(&list); {
				hash = mix(hash, s.hashValue(list.Message()))
			}
		case listValue:
			hash = listValue
			for list := value.Message(); s.next(&list); {
				inner := list.Message()
				p := s.pair(&inner)
				hash += mix(hashText(p.key), s.hashValue(s.valueOf(&p)))
			}
		default: // another number, or bytes
			hash = mix(value.Field, value.Value)
			if value.Type == wire.BytesType {
				hash = mix(value.Field, xxhash.Sum64(value.Bytes()))
			}
		}
	}
	return hash
}

func hashText(text string) uint64 { return xxhash.Sum64String(validutf8.Repair(text)) }

// mix returns a hash of two numbers.
func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^0x9E3779B97F4A7C15, b^0xD1B54A32D192ED03)
	return high ^ low
}
