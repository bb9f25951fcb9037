// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
)

// checker checks one message.
type checker struct {
	result Report
	dict   *profilespb.ProfilesDictionary

	strings, attributes, mappings, functions, locations, stacks, links table
	refs                                                               []reference // of the entry that is read; later, of the profiles
}

// reference is an index into a table.
type reference struct {
	table *table
	index int32
}

// table is the knowledge about one of the seven tables.
type table struct {
	path string
	// class holds, for each index, the first index of equal value. Entries are equal by
	// value, recursively, exactly if their classes are equal.
	class   []int
	refs    [][]reference // by index
	reached []bool
	show    func(i int) string
}

func (t *table) has(index int32) bool { return index >= 0 && int(index) < len(t.class) }

// checkDictionary checks the tables in themselves. A table comes after those that it
// refers to, so that equality by value can go by the classes of indices.
func (c *checker) checkDictionary() {
	d := c.dict
	readTable(c, &c.strings, "string", d.GetStringTable(), func(_ string, s string) string { return s }, "")
	readTable(c, &c.attributes, "attribute", d.GetAttributeTable(), c.attributeKey, &profilespb.KeyValueAndUnit{})
	readTable(c, &c.mappings, "mapping", d.GetMappingTable(), c.mappingKey, &profilespb.Mapping{})
	readTable(c, &c.functions, "function", d.GetFunctionTable(), c.functionKey, &profilespb.Function{})
	readTable(c, &c.locations, "location", d.GetLocationTable(), c.locationKey, &profilespb.Location{})
	readTable(c, &c.stacks, "stack", d.GetStackTable(), c.stackKey, &profilespb.Stack{})
	readTable(c, &c.links, "link", d.GetLinkTable(), c.linkKey, &profilespb.Link{})
	for i, a := range d.GetAttributeTable() {
		if i > 0 && a.GetKeyStrindex() == 0 {
			c.report(EmptyKey, c.attributes.at(i), "without a key", "an attribute with a key")
		}
		if unit := c.text(a.GetUnitStrindex()); c.strings.has(a.GetUnitStrindex()) && !isUCUM(unit) {
			c.report(Units, c.attributes.at(i)+".unit_strindex", strconv.Quote(unit), "a unit of UCUM, such as By, ns or {request}")
		}
	}
	c.checkFunctions()
	c.checkMappings()
	c.checkLinks()
	c.checkAddresses()
}

func (t *table) at(i int) string { return t.path + "[" + strconv.Itoa(i) + "]" }

// readTable fills t, and reports a wrong index 0 and duplicates. key returns the value
// of an entry as a string, and reports what is wrong inside it.
func readTable[E any](c *checker, t *table, name string, entries []E, key func(path string, entry E) string, zero E) {
	*t = table{
		path:  "dictionary." + name + "_table",
		class: make([]int, len(entries)), refs: make([][]reference, len(entries)), reached: make([]bool, len(entries)),
	}
	t.show = func(i int) string {
		if s, ok := any(entries[i]).(string); ok {
			return strconv.Quote(s)
		}
		return fmt.Sprintf("{%v}", entries[i])
	}
	if len(entries) == 0 {
		c.report(ZeroValue, t.path, "empty", "a table with the zero value at index 0")
	}
	zeroKey := key("", zero)
	first := make(map[string]int, len(entries))
	for i, entry := range entries {
		c.refs = nil
		k := key(t.at(i), entry)
		t.refs[i], c.refs = c.refs, nil
		if i == 0 && k != zeroKey {
			c.report(ZeroValue, t.at(0), t.show(0), "the zero value")
		}
		t.class[i] = i
		if j, ok := first[k]; ok {
			t.class[i] = j
			c.report(Duplicate, t.at(i), t.show(i), "different from "+t.at(j))
		} else {
			first[k] = i
		}
	}
}

// ref notes a reference, and returns the class of an index into t, for a key. It reports
// an index outside t, which is a class of its own.
func (c *checker) ref(t *table, index int32, path, field string) string {
	if t.has(index) {
		c.refs = append(c.refs, reference{t, index})
		return strconv.Itoa(t.class[index])
	}
	if index == 0 { // of an empty table, which is reported once
		return "0"
	}
	c.report(IndexRange, path+field, strconv.Itoa(int(index)), fmt.Sprintf("an index of %s, which has %d entries", t.path, len(t.class)))
	return "outside:" + strconv.Itoa(int(index))
}

func (c *checker) checkFunctions() {
	empty := func(index int32) bool { return index == 0 || c.text(index) == "" }
	for i, f := range c.dict.GetFunctionTable() {
		if i > 0 && empty(f.GetNameStrindex()) && empty(f.GetSystemNameStrindex()) && empty(f.GetFilenameStrindex()) {
			c.report(FunctionNames, c.functions.at(i), c.functions.show(i), "a function with a name, a system name or a file name")
		}
		c.checkNumber(c.functions.at(i)+".start_line", f.GetStartLine())
	}
	for i, l := range c.dict.GetLocationTable() {
		for j, line := range l.GetLines() {
			path := fmt.Sprintf("%s.lines[%d]", c.locations.at(i), j)
			c.checkNumber(path+".line", line.GetLine())
			c.checkNumber(path+".column", line.GetColumn())
		}
	}
}

func (c *checker) checkNumber(path string, n int64) {
	if n < 0 {
		c.report(Negative, path, strconv.FormatInt(n, 10), "0 for unknown, or more")
	}
}

// buildIDs are the attributes that identify the file of a mapping.
// https://opentelemetry.io/docs/specs/semconv/registry/attributes/process/
var buildIDs = []string{"process.executable.build_id.gnu", "process.executable.build_id.go", "process.executable.build_id.htlhash"}

func (c *checker) checkMappings() {
	for i, m := range c.dict.GetMappingTable() {
		start, limit := m.GetMemoryStart(), m.GetMemoryLimit()
		if start >= limit && (start != 0 || limit != 0) {
			c.report(MappingRange, c.mappings.at(i), fmt.Sprintf("%#x to %#x", start, limit), "a range that ends behind its start, or 0 to 0 if it is unknown")
		}
		identified := slices.ContainsFunc(m.GetAttributeIndices(), func(index int32) bool {
			return c.attributes.has(index) && slices.Contains(buildIDs, c.text(c.dict.AttributeTable[index].GetKeyStrindex()))
		})
		if i > 0 && !identified {
			c.report(BuildID, c.mappings.at(i), "without a build ID", "a mapping with one of "+strings.Join(buildIDs, ", "))
		}
	}
}

func (c *checker) checkLinks() {
	for i, l := range c.dict.GetLinkTable() {
		for _, id := range []struct {
			field string
			bytes []byte
			size  int
		}{{".trace_id", l.GetTraceId(), 16}, {".span_id", l.GetSpanId(), 8}} {
			switch wanted := count(id.size, "byte"); {
			case len(bytes.Trim(id.bytes, "\x00")) == 0 && i > 0:
				c.report(LinkIDs, c.links.at(i)+id.field, "missing or all zeros", wanted+" that are not all zeros")
			case len(id.bytes) != id.size && len(id.bytes) > 0:
				c.report(LinkIDs, c.links.at(i)+id.field, count(len(id.bytes), "byte"), wanted)
			}
		}
	}
}

func (c *checker) checkAddresses() {
	for i, l := range c.dict.GetLocationTable() {
		index := l.GetMappingIndex()
		if index <= 0 || !c.mappings.has(index) || l.GetAddress() == 0 {
			continue
		}
		m := c.dict.MappingTable[index]
		start, limit := m.GetMemoryStart(), m.GetMemoryLimit()
		if (start != 0 || limit != 0) && (l.GetAddress() < start || l.GetAddress() > limit) {
			c.report(AddressRange, c.locations.at(i)+".address", fmt.Sprintf("%#x", l.GetAddress()),
				fmt.Sprintf("inside %s, %#x to %#x", c.mappings.at(int(index)), start, limit))
		}
	}
}

// checkReached reports entries that no profile, resource or scope reaches.
func (c *checker) checkReached() {
	reach(c.refs)
	for _, t := range []*table{&c.mappings, &c.locations, &c.functions, &c.links, &c.strings, &c.attributes, &c.stacks} {
		for i, reached := range t.reached {
			if i > 0 && !reached {
				c.report(Unreferenced, t.at(i), t.show(i), "reached from a profile, resource or scope")
			}
		}
	}
}

func reach(refs []reference) {
	for _, r := range refs {
		if !r.table.reached[r.index] {
			r.table.reached[r.index] = true
			reach(r.table.refs[r.index])
		}
	}
}
