// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
)

// table is what the check knows of one of the seven tables.
type table struct {
	name string
	// class holds, for each index, the first index of equal value. Entries are
	// equal by value, recursively, exactly if their classes are equal.
	class   []int
	reached []bool
}

func newTable(name string, size int) *table {
	t := &table{name: name, class: make([]int, size), reached: make([]bool, size)}
	for i := range t.class {
		t.class[i] = i
	}
	return t
}

func (t *table) has(index int32) bool {
	return index >= 0 && int(index) < len(t.class)
}

// reach marks index and tells whether it was new.
func (t *table) reach(index int32) bool {
	if !t.has(index) || t.reached[index] {
		return false
	}
	t.reached[index] = true
	return true
}

// tablesCheck checks the dictionary, and knows it for the check of profiles.
type tablesCheck struct {
	*findings
	dict *profilespb.ProfilesDictionary

	strings, attributes, mappings, functions, locations, stacks, links *table
}

func newTablesCheck(f *findings, dict *profilespb.ProfilesDictionary) *tablesCheck {
	return &tablesCheck{
		findings:   f,
		dict:       dict,
		strings:    newTable("string_table", len(dict.StringTable)),
		attributes: newTable("attribute_table", len(dict.AttributeTable)),
		mappings:   newTable("mapping_table", len(dict.MappingTable)),
		functions:  newTable("function_table", len(dict.FunctionTable)),
		locations:  newTable("location_table", len(dict.LocationTable)),
		stacks:     newTable("stack_table", len(dict.StackTable)),
		links:      newTable("link_table", len(dict.LinkTable)),
	}
}

func (c *tablesCheck) all() []*table {
	return []*table{c.mappings, c.locations, c.functions, c.links, c.strings, c.attributes, c.stacks}
}

// checkTables checks what the tables say by themselves. Tables come after those
// they refer to, so that equality by value can go by the classes of indices.
func (c *tablesCheck) checkTables() {
	for _, t := range c.all() {
		if len(t.class) == 0 {
			c.violate(ruleZeroValue, "%s is empty, its index 0 must be present", t.name)
		}
	}
	classify(c, c.strings, c.dict.StringTable, func(_ string, s string) string { return s }, "")
	classify(c, c.attributes, c.dict.AttributeTable, c.attributeKey, &profilespb.KeyValueAndUnit{})
	classify(c, c.mappings, c.dict.MappingTable, c.mappingKey, &profilespb.Mapping{})
	classify(c, c.functions, c.dict.FunctionTable, c.functionKey, &profilespb.Function{})
	classify(c, c.locations, c.dict.LocationTable, c.locationKey, &profilespb.Location{})
	classify(c, c.stacks, c.dict.StackTable, c.stackKey, &profilespb.Stack{})
	classify(c, c.links, c.dict.LinkTable, c.linkKey, &profilespb.Link{})
	c.checkFunctions()
	c.checkLinks()
	c.checkAddresses()
}

// classify fills t.class, and reports a wrong index 0 and duplicates. key gives
// the value of an entry as a string, and reports what is wrong inside it at the
// place it is told.
func classify[E any](c *tablesCheck, t *table, entries []E, key func(place string, entry E) string, zero E) {
	first := make(map[string]int, len(entries))
	for i, entry := range entries {
		place := fmt.Sprintf("%s[%d]", t.name, i)
		k := key(place, entry)
		if i == 0 && k != key("", zero) {
			c.violate(ruleZeroValue, "%s is %s, not the zero value", place, show(entry))
		}
		if j, ok := first[k]; ok {
			t.class[i] = j
			c.violate(ruleDuplicate, "%s and %s[%d] are both %s", place, t.name, j, show(entry))
			continue
		}
		first[k] = i
	}
}

// ref returns the class of an index into t, for a key. An index outside of t is
// reported and its own class.
func (c *tablesCheck) ref(t *table, index int32, place, field string) string {
	if t.has(index) {
		return strconv.Itoa(t.class[index])
	}
	// The zero value, which is compared with, refers to index 0 of tables that
	// may be empty: that is another rule's finding.
	if place != "" && (index != 0 || len(t.class) > 0) {
		c.violate(ruleRange, "%s.%s is %d, outside of %s, which has %d entries", place, field, index, t.name, len(t.class))
	}
	if index == 0 {
		return "0"
	}
	return "outside:" + strconv.Itoa(int(index))
}

func (c *tablesCheck) functionKey(place string, f *profilespb.Function) string {
	return strings.Join([]string{
		c.ref(c.strings, f.GetNameStrindex(), place, "name_strindex"),
		c.ref(c.strings, f.GetSystemNameStrindex(), place, "system_name_strindex"),
		c.ref(c.strings, f.GetFilenameStrindex(), place, "filename_strindex"),
		strconv.FormatInt(f.GetStartLine(), 10),
	}, ",")
}

func (c *tablesCheck) mappingKey(place string, m *profilespb.Mapping) string {
	return fmt.Sprintf("%d,%d,%d,%s,%s", m.GetMemoryStart(), m.GetMemoryLimit(), m.GetFileOffset(),
		c.ref(c.strings, m.GetFilenameStrindex(), place, "filename_strindex"),
		c.attributeSet(place, m.GetAttributeIndices()))
}

func (c *tablesCheck) locationKey(place string, l *profilespb.Location) string {
	var k strings.Builder
	fmt.Fprintf(&k, "%s,%d", c.ref(c.mappings, l.GetMappingIndex(), place, "mapping_index"), l.GetAddress())
	for i, line := range l.GetLines() {
		linePlace := place
		if place != "" {
			linePlace = fmt.Sprintf("%s.lines[%d]", place, i)
		}
		fmt.Fprintf(&k, ";%s,%d,%d", c.ref(c.functions, line.GetFunctionIndex(), linePlace, "function_index"), line.GetLine(), line.GetColumn())
	}
	k.WriteString("|" + c.attributeSet(place, l.GetAttributeIndices()))
	return k.String()
}

func (c *tablesCheck) stackKey(place string, s *profilespb.Stack) string {
	var k strings.Builder
	for i, index := range s.GetLocationIndices() {
		k.WriteString(c.ref(c.locations, index, place, "location_indices["+strconv.Itoa(i)+"]") + ",")
	}
	return k.String()
}

// linkKey takes an id of zeros for no id: the format allows both at index 0.
func (c *tablesCheck) linkKey(_ string, l *profilespb.Link) string {
	id := func(b []byte) string {
		if len(bytes.Trim(b, "\x00")) == 0 {
			return ""
		}
		return hex.EncodeToString(b)
	}
	return id(l.GetTraceId()) + "/" + id(l.GetSpanId())
}

func (c *tablesCheck) attributeKey(place string, a *profilespb.KeyValueAndUnit) string {
	return c.ref(c.strings, a.GetKeyStrindex(), place, "key_strindex") + "," +
		c.ref(c.strings, a.GetUnitStrindex(), place, "unit_strindex") + "," +
		c.valueKey(place, "value", a.GetValue())
}

// valueKey writes a value out so that two are equal exactly if their values
// are: the type is part of it, lists of pairs have no order, -0.0 is 0.0, and a
// NaN goes by its bits.
func (c *tablesCheck) valueKey(place, field string, v *commonpb.AnyValue) string {
	switch v := v.GetValue().(type) {
	case nil:
		return "empty"
	case *commonpb.AnyValue_StringValue:
		return strconv.Quote(v.StringValue)
	case *commonpb.AnyValue_StringValueStrindex:
		if place != "" && strings.HasPrefix(place, c.attributes.name) {
			c.warn(adviceReference, "%s.%s is string reference %d, which pdata reads as an empty value", place, field, v.StringValueStrindex)
		}
		c.ref(c.strings, v.StringValueStrindex, place, field+".string_value_strindex")
		if !c.strings.has(v.StringValueStrindex) {
			return fmt.Sprintf("outside:%d", v.StringValueStrindex)
		}
		return strconv.Quote(c.dict.StringTable[v.StringValueStrindex])
	case *commonpb.AnyValue_BoolValue:
		return strconv.FormatBool(v.BoolValue)
	case *commonpb.AnyValue_IntValue:
		return strconv.FormatInt(v.IntValue, 10)
	case *commonpb.AnyValue_DoubleValue:
		if v.DoubleValue == 0 {
			return "double:0"
		}
		return fmt.Sprintf("double:%x", math.Float64bits(v.DoubleValue))
	case *commonpb.AnyValue_BytesValue:
		return "bytes:" + hex.EncodeToString(v.BytesValue)
	case *commonpb.AnyValue_ArrayValue:
		var elements []string
		for i, e := range v.ArrayValue.GetValues() {
			elements = append(elements, c.valueKey(place, fmt.Sprintf("%s[%d]", field, i), e))
		}
		return "[" + strings.Join(elements, ",") + "]"
	case *commonpb.AnyValue_KvlistValue:
		pairs := c.keyValues(place, field, v.KvlistValue.GetValues())
		sort.Strings(pairs)
		return "{" + strings.Join(pairs, ",") + "}"
	default:
		return fmt.Sprintf("unknown:%T", v)
	}
}

// keyValues checks attributes that are written out or referenced one by one (of
// a resource, a scope or a nested list) and returns each as a key.
func (c *tablesCheck) keyValues(place, field string, kvs []*commonpb.KeyValue) []string {
	out := make([]string, 0, len(kvs))
	first := map[string]int{}
	for i, kv := range kvs {
		at := fmt.Sprintf("%s[%d]", field, i)
		key := strconv.Quote(kv.GetKey())
		if index := kv.GetKeyStrindex(); index != 0 {
			if kv.GetKey() != "" {
				c.violate(ruleKeyReference, "%s.%s has key %q and key_strindex %d, only one may be set", place, at, kv.GetKey(), index)
			}
			c.ref(c.strings, index, place, at+".key_strindex")
			key = fmt.Sprintf("outside:%d", index)
			if c.strings.has(index) {
				key = strconv.Quote(c.dict.StringTable[index])
			}
		} else if kv.GetKey() == "" {
			c.warn(adviceEmptyKey, "%s.%s has no key", place, at)
		}
		if j, ok := first[key]; ok {
			c.violate(ruleAttributeKeys, "%s.%s: key %s is also that of %s[%d]", place, at, key, field, j)
		} else {
			first[key] = i
		}
		out = append(out, key+"="+c.valueKey(place, at+".value", kv.GetValue()))
	}
	return out
}

// attributeSet checks one attribute_indices field and returns it as a key: it
// is a set, without order or repetition.
func (c *tablesCheck) attributeSet(place string, indices []int32) string {
	set := make([]string, 0, len(indices))
	first := make(map[string]int, len(indices))
	for i, index := range indices {
		field := "attribute_indices[" + strconv.Itoa(i) + "]"
		set = append(set, c.ref(c.attributes, index, place, field))
		if !c.attributes.has(index) {
			continue
		}
		if index == 0 {
			c.warn(adviceNull, "%s.%s is 0, which means no attribute", place, field)
		}
		key := c.ref(c.strings, c.dict.AttributeTable[index].GetKeyStrindex(), "", "")
		if j, ok := first[key]; ok {
			c.violate(ruleAttributeKeys, "%s.%s is attribute_table[%d] with key %s, the key of attribute_indices[%d], attribute_table[%d], too",
				place, field, index, c.quoted(c.dict.AttributeTable[index].GetKeyStrindex()), j, indices[j])
		} else {
			first[key] = i
		}
	}
	sort.Strings(set)
	return strings.Join(slices.Compact(set), "+")
}

// quoted shows the string at index, for a message.
func (c *tablesCheck) quoted(index int32) string {
	if !c.strings.has(index) {
		return fmt.Sprintf("string_table[%d]", index)
	}
	return strconv.Quote(c.dict.StringTable[index])
}

func (c *tablesCheck) checkFunctions() {
	for i, f := range c.dict.FunctionTable {
		empty := func(index int32) bool {
			return index == 0 || c.strings.has(index) && c.dict.StringTable[index] == ""
		}
		if i > 0 && empty(f.GetNameStrindex()) && empty(f.GetSystemNameStrindex()) && empty(f.GetFilenameStrindex()) {
			c.warn(adviceFunction, "function_table[%d] has neither a name, a system name nor a file name: %s", i, show(f))
		}
	}
}

func (c *tablesCheck) checkLinks() {
	for i, l := range c.dict.LinkTable {
		for _, id := range []struct {
			field string
			bytes []byte
			size  int
		}{{"trace_id", l.GetTraceId(), 16}, {"span_id", l.GetSpanId(), 8}} {
			switch {
			case len(bytes.Trim(id.bytes, "\x00")) == 0 && i > 0:
				c.violate(ruleLinkIDs, "link_table[%d].%s is missing or all zeros", i, id.field)
			case len(id.bytes) != id.size && len(id.bytes) > 0:
				c.violate(ruleLinkIDs, "link_table[%d].%s has %d bytes, not %d", i, id.field, len(id.bytes), id.size)
			}
		}
	}
}

func (c *tablesCheck) checkAddresses() {
	for i, a := range c.dict.AttributeTable {
		if i > 0 && a.GetKeyStrindex() == 0 {
			c.warn(adviceEmptyKey, "attribute_table[%d] has no key", i)
		}
	}
	for i, l := range c.dict.LocationTable {
		if l.GetMappingIndex() <= 0 || !c.mappings.has(l.GetMappingIndex()) || l.GetAddress() == 0 {
			continue
		}
		m := c.dict.MappingTable[l.GetMappingIndex()]
		if m.GetMemoryStart() == 0 && m.GetMemoryLimit() == 0 {
			continue
		}
		if l.GetAddress() < m.GetMemoryStart() || l.GetAddress() > m.GetMemoryLimit() {
			c.warn(adviceAddress, "location_table[%d].address is %#x, outside of mapping_table[%d], %#x to %#x",
				i, l.GetAddress(), l.GetMappingIndex(), m.GetMemoryStart(), m.GetMemoryLimit())
		}
	}
}

// show writes an entry of a table out for a message.
func show(entry any) string {
	if s, ok := entry.(string); ok {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("{%v}", entry)
}

// checkReached reports entries that nothing reached.
func (c *tablesCheck) checkReached() {
	entry := map[*table]func(i int) any{
		c.strings:    func(i int) any { return c.dict.StringTable[i] },
		c.attributes: func(i int) any { return c.dict.AttributeTable[i] },
		c.mappings:   func(i int) any { return c.dict.MappingTable[i] },
		c.functions:  func(i int) any { return c.dict.FunctionTable[i] },
		c.locations:  func(i int) any { return c.dict.LocationTable[i] },
		c.stacks:     func(i int) any { return c.dict.StackTable[i] },
		c.links:      func(i int) any { return c.dict.LinkTable[i] },
	}
	for _, t := range c.all() {
		for i, reached := range t.reached {
			if i > 0 && !reached {
				c.violate(ruleUnreferenced, "%s[%d], %s, is reached from no profile, resource or scope", t.name, i, show(entry[t](i)))
			}
		}
	}
}

func (c *tablesCheck) reachStack(index int32) {
	if !c.stacks.reach(index) {
		return
	}
	for _, location := range c.dict.StackTable[index].GetLocationIndices() {
		c.reachLocation(location)
	}
}

func (c *tablesCheck) reachLocation(index int32) {
	if !c.locations.reach(index) {
		return
	}
	l := c.dict.LocationTable[index]
	if c.mappings.reach(l.GetMappingIndex()) {
		m := c.dict.MappingTable[l.GetMappingIndex()]
		c.strings.reach(m.GetFilenameStrindex())
		c.reachAttributes(m.GetAttributeIndices())
	}
	for _, line := range l.GetLines() {
		if c.functions.reach(line.GetFunctionIndex()) {
			f := c.dict.FunctionTable[line.GetFunctionIndex()]
			c.strings.reach(f.GetNameStrindex())
			c.strings.reach(f.GetSystemNameStrindex())
			c.strings.reach(f.GetFilenameStrindex())
		}
	}
	c.reachAttributes(l.GetAttributeIndices())
}

func (c *tablesCheck) reachAttributes(indices []int32) {
	for _, index := range indices {
		if c.attributes.reach(index) {
			a := c.dict.AttributeTable[index]
			c.strings.reach(a.GetKeyStrindex())
			c.strings.reach(a.GetUnitStrindex())
			c.reachValue(a.GetValue())
		}
	}
}

func (c *tablesCheck) reachValue(v *commonpb.AnyValue) {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValueStrindex:
		c.strings.reach(v.StringValueStrindex)
	case *commonpb.AnyValue_ArrayValue:
		for _, e := range v.ArrayValue.GetValues() {
			c.reachValue(e)
		}
	case *commonpb.AnyValue_KvlistValue:
		c.reachKeyValues(v.KvlistValue.GetValues())
	}
}

func (c *tablesCheck) reachKeyValues(kvs []*commonpb.KeyValue) {
	for _, kv := range kvs {
		c.strings.reach(kv.GetKeyStrindex())
		c.reachValue(kv.GetValue())
	}
}
