// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package entities collects the entities that resources refer to.
package entities

import (
	"maps"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/validutf8"
)

// Set has entities by their content in binary form. The zero value has none.
type Set struct{ byContent map[string]entity.EntityRef }

// Add adds the entities that from refers to, without the description by attributes to drop. It skips an
// entity that such an attribute identifies. It returns an estimate of the bytes that s retains in
// addition.
func (s *Set) Add(from pcommon.Resource, drop []string) (size int) {
	for _, ref := range entity.ResourceEntityRefs(from).All() {
		to := entity.NewEntityRef()
		to.SetSchemaUrl(validutf8.Repair(ref.SchemaUrl()))
		to.SetType(validutf8.Repair(ref.Type()))
		key := dictionary.Value{}.AppendKey(to.SchemaUrl()).AppendKey(to.Type())
		identified := true
		for _, name := range ref.IdKeys().All() {
			identified = identified && !slices.Contains(drop, name)
			to.IdKeys().Append(validutf8.Repair(name))
			key = key.AppendKey(validutf8.Repair(name))
		}
		if !identified {
			continue
		}
		key = key.AppendInt(int64(to.IdKeys().Len()))
		for _, name := range ref.DescriptionKeys().All() {
			if !slices.Contains(drop, name) {
				to.DescriptionKeys().Append(validutf8.Repair(name))
				key = key.AppendKey(validutf8.Repair(name))
			}
		}
		if _, ok := s.byContent[string(key)]; ok {
			continue
		}
		if s.byContent == nil {
			s.byContent = map[string]entity.EntityRef{}
		}
		s.byContent[string(key)] = to
		const entitySize = 256
		size += entitySize + 3*len(key)
	}
	return size
}

// CopyTo adds all to a resource that refers to none, in the order of their content.
func (s *Set) CopyTo(to pcommon.Resource) {
	refs := entity.ResourceEntityRefs(to)
	for _, key := range slices.Sorted(maps.Keys(s.byContent)) {
		s.byContent[key].CopyTo(refs.AppendEmpty())
	}
}
