// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"encoding/binary"
	"strings"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// keptAttributes returns the attributes of a resource without those that are left
// out of resources. It does not change m.
func (s *mergeSettings) keptAttributes(m pcommon.Map) pcommon.Map {
	if len(s.dropResourceAttributes) == 0 {
		return m
	}
	kept := pcommon.NewMap()
	m.CopyTo(kept)
	kept.RemoveIf(func(key string, _ pcommon.Value) bool { return s.dropResourceAttributes[key] })
	return kept
}

// partitionOf returns the key of the partition that a resource with these attributes
// belongs to: for each attribute of split_by, whether it is there, and its value.
func (s *mergeSettings) partitionOf(m pcommon.Map) string {
	var key []byte
	for _, name := range s.splitBy {
		v, ok := m.Get(name)
		if !ok {
			key = append(key, 0)
			continue
		}
		text := valid(v.AsString())
		key = binary.AppendUvarint(append(key, 1), uint64(len(text)))
		key = append(key, text...)
	}
	return string(key)
}

// metadata is info with the client metadata of a partition: a value for each
// attribute of split_by that its resources have. The other metadata stay.
func (s *mergeSettings) metadata(info client.Info, partition string) client.Info {
	if len(s.splitBy) == 0 {
		return info
	}
	all := map[string][]string{} // by lower-case name, as Metadata has them
	for name := range info.Metadata.Keys() {
		all[name] = info.Metadata.Get(name)
	}
	key := []byte(partition)
	for _, name := range s.splitBy {
		there := key[0] == 1
		key = key[1:]
		if !there {
			delete(all, strings.ToLower(name))
			continue
		}
		size, n := binary.Uvarint(key)
		key = key[n:]
		all[strings.ToLower(name)] = []string{string(key[:size])}
		key = key[size:]
	}
	info.Metadata = client.NewMetadata(all)
	return info
}
