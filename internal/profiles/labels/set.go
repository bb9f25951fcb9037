// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package labels

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
)

const (
	// MaxSize bounds the memory in bytes of a Set that NewSet did not return.
	MaxSize = 64 << 10
	// maxShare is the part of its memory that the values of one attribute may take.
	maxShare = 4
	// valueSize is the memory of a key or value besides its text.
	valueSize = 48
)

// Set is the attributes that some profiles have, with their values. The zero value is empty.
type Set struct {
	keys       map[string]*values
	size       int64 // in bytes
	max        int64 // of size, 0 for MaxSize
	incomplete bool  // some keys are missing, because there are too many
}

// values are those of one key.
type values struct {
	all  map[string]struct{} // nil if there are too many
	size int64
}

// NewSet returns a Set that takes at most so many bytes of memory.
func NewSet(bytes int64) *Set { return &Set{max: bytes} }

// Size estimates the memory of the set in bytes.
func (s *Set) Size() int64 { return s.size }

func (s *Set) limit() int64 { return cmp.Or(s.max, MaxSize) }

// of returns the values of a key, which may be new, or nil if there is no room.
func (s *Set) of(key string) *values {
	if v := s.keys[key]; v != nil {
		return v
	}
	size := int64(valueSize + len(key))
	if s.size+size > s.limit() {
		s.incomplete = true
		return nil
	}
	if s.keys == nil {
		s.keys = map[string]*values{}
	}
	v := &values{all: map[string]struct{}{}}
	s.keys[strings.Clone(key)] = v
	s.size += size
	return v
}

// add adds a value, if there is room.
func (s *Set) add(key, value string) {
	v := s.of(key)
	if v == nil || v.all == nil {
		return
	}
	if _, known := v.all[value]; known {
		return
	}
	size := int64(valueSize + len(value))
	if v.size+size > s.limit()/maxShare || s.size+size > s.limit() {
		s.dropValues(key)
		return
	}
	v.all[strings.Clone(value)] = struct{}{}
	v.size += size
	s.size += size
}

// dropValues leaves the key only.
func (s *Set) dropValues(key string) {
	if v := s.of(key); v != nil {
		s.size -= v.size
		*v = values{}
	}
}

// Merge adds the attributes of another set, which are unknown if it is nil.
func (s *Set) Merge(other *Set) {
	if other == nil {
		s.incomplete = true
		return
	}
	s.incomplete = s.incomplete || other.incomplete
	for _, key := range slices.Sorted(maps.Keys(other.keys)) { // so that what has no room depends on the attributes alone
		v := other.keys[key]
		if v.all == nil {
			s.dropValues(key)
			continue
		}
		for _, value := range v.without(s.of(key)) {
			s.add(key, value)
		}
	}
}

// without returns the values that known lacks, sorted, or none if there is no room for them.
func (v *values) without(known *values) (missing []string) {
	if known == nil || known.all == nil {
		return nil
	}
	for value := range v.all {
		if _, found := known.all[value]; !found {
			missing = append(missing, value)
		}
	}
	slices.Sort(missing)
	return missing
}

// Of returns the attributes of a payload.
func Of(pd pprofile.Profiles) *Set {
	s := &Set{}
	s.AddProfiles(pd)
	return s
}

// AddProfiles adds the attributes of the resources, Profiles and samples of a payload. Attributes of resources must show
// their strings.
func (s *Set) AddProfiles(pd pprofile.Profiles) {
	table := pd.Dictionary().AttributeTable()
	used := make([]bool, table.Len())
	use := func(indices pcommon.Int32Slice) {
		for k := range indices.Len() { // without the iterator, which takes twice as long
			if i := indices.At(k); uint32(i) < uint32(len(used)) {
				used[i] = true
			}
		}
	}
	for _, rp := range pd.ResourceProfiles().All() {
		for key, v := range rp.Resource().Attributes().All() {
			s.addValue(dictionary.ValidUTF8(key), v)
		}
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				use(p.AttributeIndices())
				samples := p.Samples()
				for i := range samples.Len() {
					use(samples.At(i).AttributeIndices())
				}
			}
		}
	}
	for i, a := range table.All() {
		if i > 0 && used[i] {
			s.addValue(dictionary.ValidString(pd.Dictionary().StringTable(), a.KeyStrindex()), a.Value())
		}
	}
}

func (s *Set) addValue(key string, v pcommon.Value) {
	if v.Type() == pcommon.ValueTypeEmpty {
		s.incomplete = true // it may be a reference to a string
	} else if text, ok := Text(v); ok {
		s.add(key, dictionary.ValidUTF8(text))
	}
}

// IsComplete reports whether the set has all values of all attributes.
func (s *Set) IsComplete() bool {
	for _, v := range s.keys {
		if v.all == nil {
			return false
		}
	}
	return !s.incomplete
}

// Names returns the names of the labels, sorted, and whether there are no others.
func (s *Set) Names() (names []string, complete bool) {
	for key := range s.keys {
		names = append(names, Name(key))
	}
	slices.Sort(names)
	return slices.Compact(names), !s.incomplete
}

// Keys returns the keys of the attributes, sorted: the labels as they are named.
func (s *Set) Keys() []string { return slices.Sorted(maps.Keys(s.keys)) }

// Values returns the values of a label but "", sorted, and whether there are no others.
func (s *Set) Values(name string) (found []string, complete bool) {
	complete = !s.incomplete
	for key, v := range s.keys {
		if Is(key, name) {
			found = slices.AppendSeq(found, maps.Keys(v.all))
			complete = complete && v.all != nil
		}
	}
	slices.Sort(found)
	found = slices.DeleteFunc(slices.Compact(found), func(value string) bool { return value == "" })
	return found, complete
}

// MayHave reports whether something may have a label.
func (s *Set) MayHave(name string) bool {
	if s.incomplete {
		return true
	}
	for key := range s.keys {
		if Is(key, name) {
			return true
		}
	}
	return false
}

// MayMatch reports whether a value of a label may be selected, or that it is missing.
func (s *Set) MayMatch(ctx context.Context, m *Matcher) bool {
	found, complete := s.Values(m.Name)
	return !complete || m.Matches(ctx, "") || slices.ContainsFunc(found, func(value string) bool { return m.Matches(ctx, value) })
}

// encoded is the form of a Set in JSON. The values of a key are null if there are too many.
type encoded struct {
	Labels     map[string][]string `json:"labels"`
	Incomplete bool                `json:"incomplete,omitempty"`
}

// MarshalJSON encodes the set, in the order of keys and values.
func (s *Set) MarshalJSON() ([]byte, error) {
	e := encoded{Labels: make(map[string][]string, len(s.keys)), Incomplete: s.incomplete}
	for key, v := range s.keys {
		if v.all != nil {
			e.Labels[key] = append([]string{}, slices.Sorted(maps.Keys(v.all))...)
		} else {
			e.Labels[key] = nil
		}
	}
	return json.Marshal(e)
}

// UnmarshalJSON decodes what MarshalJSON has encoded.
func (s *Set) UnmarshalJSON(data []byte) error {
	const most = 8 * MaxSize // bytes of text that is escaped
	if len(data) > most {
		return fmt.Errorf("labels have %d bytes: must have at most %d", len(data), most)
	}
	var e encoded
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	*s = Set{incomplete: e.Incomplete}
	for key, all := range e.Labels {
		for _, value := range all {
			s.add(key, value)
		}
		if all == nil {
			s.dropValues(key)
		}
	}
	return nil
}
