// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"maps"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// entities are the entities that a resource refers to, by their content in binary form:
// those of all its sources.
type entities map[string]entity.EntityRef

// addEntities adds the entities that from refers to. It skips an entity that an attribute to
// drop identifies.
func (w *Window) addEntities(r *resource, from pcommon.Resource) {
	dropped := func(name string) bool { return slices.Contains(w.options.DropResourceAttributes, name) }
	for _, ref := range entity.ResourceEntityRefs(from).All() {
		to := entity.NewEntityRef()
		to.SetSchemaUrl(dictionary.ValidUTF8(ref.SchemaUrl()))
		to.SetType(dictionary.ValidUTF8(ref.Type()))
		key := dictionary.Value{}.AppendKey(to.SchemaUrl()).AppendKey(to.Type())
		identified := true
		for _, name := range ref.IdKeys().All() {
			identified = identified && !dropped(name)
			to.IdKeys().Append(dictionary.ValidUTF8(name))
			key = key.AppendKey(dictionary.ValidUTF8(name))
		}
		if !identified {
			continue
		}
		key = key.AppendInt(int64(to.IdKeys().Len()))
		for _, name := range ref.DescriptionKeys().All() {
			if !dropped(name) {
				to.DescriptionKeys().Append(dictionary.ValidUTF8(name))
				key = key.AppendKey(dictionary.ValidUTF8(name))
			}
		}
		if _, ok := r.entities[string(key)]; ok {
			continue
		}
		if r.entities == nil {
			r.entities = entities{}
		}
		r.entities[string(key)] = to
		w.size += entrySize/2 + 3*len(key)
	}
}

// copyTo adds all to a resource that refers to none.
func (all entities) copyTo(to pcommon.Resource) {
	refs := entity.ResourceEntityRefs(to)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		all[key].CopyTo(refs.AppendEmpty())
	}
}
