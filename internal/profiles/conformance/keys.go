// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
)

// The functions below return the value of an entry as a key: two keys are equal exactly
// if the values are. They report what is wrong inside the entry, which is at path.

func (c *checker) functionKey(path string, f *profilespb.Function) string {
	return c.ref(&c.strings, f.GetNameStrindex(), path, ".name_strindex") + "," +
		c.ref(&c.strings, f.GetSystemNameStrindex(), path, ".system_name_strindex") + "," +
		c.ref(&c.strings, f.GetFilenameStrindex(), path, ".filename_strindex") + "," +
		strconv.FormatInt(f.GetStartLine(), 10)
}

func (c *checker) mappingKey(path string, m *profilespb.Mapping) string {
	return fmt.Sprintf("%d,%d,%d,%s|%s", m.GetMemoryStart(), m.GetMemoryLimit(), m.GetFileOffset(),
		c.ref(&c.strings, m.GetFilenameStrindex(), path, ".filename_strindex"), c.attributeSet(path, m.GetAttributeIndices()))
}

func (c *checker) locationKey(path string, l *profilespb.Location) string {
	var k strings.Builder
	fmt.Fprintf(&k, "%s,%d", c.ref(&c.mappings, l.GetMappingIndex(), path, ".mapping_index"), l.GetAddress())
	for i, line := range l.GetLines() {
		function := c.ref(&c.functions, line.GetFunctionIndex(), path, fmt.Sprintf(".lines[%d].function_index", i))
		fmt.Fprintf(&k, ";%s,%d,%d", function, line.GetLine(), line.GetColumn())
	}
	k.WriteString("|" + c.attributeSet(path, l.GetAttributeIndices()))
	return k.String()
}

func (c *checker) stackKey(path string, s *profilespb.Stack) string {
	var k strings.Builder
	for i, index := range s.GetLocationIndices() {
		k.WriteString(c.ref(&c.locations, index, path, ".location_indices["+strconv.Itoa(i)+"]") + ",")
	}
	return k.String()
}

// linkKey takes an id of zeros for a missing one: the format allows both at index 0.
func (c *checker) linkKey(_ string, l *profilespb.Link) string {
	id := func(b []byte) string {
		if len(bytes.Trim(b, "\x00")) == 0 {
			return ""
		}
		return hex.EncodeToString(b)
	}
	return id(l.GetTraceId()) + "/" + id(l.GetSpanId())
}

func (c *checker) attributeKey(path string, a *profilespb.KeyValueAndUnit) string {
	return c.ref(&c.strings, a.GetKeyStrindex(), path, ".key_strindex") + "," +
		c.ref(&c.strings, a.GetUnitStrindex(), path, ".unit_strindex") + "," +
		c.valueKey(path+".value", a.GetValue())
}

// attributeSet returns attribute_indices as a key: a set, without order or repetition.
func (c *checker) attributeSet(path string, indices []int32) string {
	set := make([]string, 0, len(indices))
	first := make(map[string]int, len(indices))
	for i, index := range indices {
		field := ".attribute_indices[" + strconv.Itoa(i) + "]"
		set = append(set, c.ref(&c.attributes, index, path, field))
		if !c.attributes.has(index) {
			continue
		}
		if index == 0 {
			c.report(NullAttribute, path+field, "0, which means no attribute", "an attribute")
		}
		key := strconv.Quote(c.text(c.dict.AttributeTable[index].GetKeyStrindex()))
		if j, ok := first[key]; ok {
			c.report(AttributeKeys, path+field, fmt.Sprintf("%d with key %s, the key of attribute_indices[%d], too", index, key, j), "a key that is unique in the set")
		} else {
			first[key] = i
		}
	}
	slices.Sort(set)
	return strings.Join(slices.Compact(set), "+")
}

// valueKey: the type is part of the value, lists of pairs have no order, -0.0 is 0.0,
// and a NaN goes by its bits.
func (c *checker) valueKey(path string, v *commonpb.AnyValue) string {
	switch v := v.GetValue().(type) {
	case nil:
		return "empty"
	case *commonpb.AnyValue_StringValue:
		return strconv.Quote(v.StringValue)
	case *commonpb.AnyValue_StringValueStrindex:
		if strings.HasPrefix(path, c.attributes.path) {
			c.report(HiddenValue, path, fmt.Sprintf("string reference %d, which pdata reads as an empty value", v.StringValueStrindex), "a string")
		}
		c.ref(&c.strings, v.StringValueStrindex, path, ".string_value_strindex")
		return strconv.Quote(c.text(v.StringValueStrindex))
	case *commonpb.AnyValue_DoubleValue:
		if v.DoubleValue == 0 {
			return "double:0"
		}
		return fmt.Sprintf("double:%x", math.Float64bits(v.DoubleValue))
	case *commonpb.AnyValue_ArrayValue:
		var elements []string
		for i, e := range v.ArrayValue.GetValues() {
			elements = append(elements, c.valueKey(fmt.Sprintf("%s[%d]", path, i), e))
		}
		return "[" + strings.Join(elements, ",") + "]"
	case *commonpb.AnyValue_KvlistValue:
		pairs := c.keyValues(path, v.KvlistValue.GetValues())
		slices.Sort(pairs)
		return "{" + strings.Join(pairs, ",") + "}"
	default: // a boolean, an integer or bytes
		return fmt.Sprintf("%T%v", v, v)
	}
}

// keyValues returns the attributes of a resource, a scope or a nested list as keys.
func (c *checker) keyValues(path string, kvs []*commonpb.KeyValue) []string {
	out := make([]string, 0, len(kvs))
	first := map[string]int{}
	for i, kv := range kvs {
		at := fmt.Sprintf("%s[%d]", path, i)
		key := strconv.Quote(kv.GetKey())
		if index := kv.GetKeyStrindex(); index != 0 {
			if kv.GetKey() != "" {
				c.report(KeyReference, at, fmt.Sprintf("key %q and key_strindex %d", kv.GetKey(), index), "only one of the two")
			}
			c.ref(&c.strings, index, at, ".key_strindex")
			key = strconv.Quote(c.text(index))
		} else if kv.GetKey() == "" {
			c.report(EmptyKey, at, "without a key", "an attribute with a key")
		}
		if j, ok := first[key]; ok {
			c.report(AttributeKeys, at, fmt.Sprintf("key %s, the key of %s[%d], too", key, path, j), "a key that is unique in the set")
		} else {
			first[key] = i
		}
		out = append(out, key+"="+c.valueKey(at+".value", kv.GetValue()))
	}
	return out
}
