// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"maps"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
)

// entitySet has entities by their content in binary form. The zero value has none.
type entitySet struct{ byContent map[string]entity.EntityRef }

// Add adds the entities that from refers to, without the description by attributes to drop. It skips an
// entity that such an attribute identifies. It returns an estimate of the bytes that s retains in
// addition.
func (s *entitySet) Add(from pcommon.Resource, drop []string) (size int) {
	for _, ref := range entity.ResourceEntityRefs(from).All() {
		to := entity.NewEntityRef()
		to.SetSchemaUrl(dictionary.ValidUTF8(ref.SchemaUrl()))
		to.SetType(dictionary.ValidUTF8(ref.Type()))
		key := dictionary.Value{}.AppendKey(to.SchemaUrl()).AppendKey(to.Type())
		identified := true
		for _, name := range ref.IdKeys().All() {
			identified = identified && !slices.Contains(drop, name)
			to.IdKeys().Append(dictionary.ValidUTF8(name))
			key = key.AppendKey(dictionary.ValidUTF8(name))
		}
		if !identified {
			continue
		}
		key = key.AppendInt(int64(to.IdKeys().Len()))
		for _, name := range ref.DescriptionKeys().All() {
			if !slices.Contains(drop, name) {
				to.DescriptionKeys().Append(dictionary.ValidUTF8(name))
				key = key.AppendKey(dictionary.ValidUTF8(name))
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
func (s *entitySet) CopyTo(to pcommon.Resource) {
	refs := entity.ResourceEntityRefs(to)
	for _, key := range slices.Sorted(maps.Keys(s.byContent)) {
		s.byContent[key].CopyTo(refs.AppendEmpty())
	}
}
