// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// IndexError says that an index leads outside its table.
type IndexError struct {
	Where string // the field, as a path
	Index int32
	Table string
	Len   int // entries of the table
}

func (e *IndexError) Error() string {
	return fmt.Sprintf("%s is %d: %s_table has %d entries", e.Where, e.Index, e.Table, e.Len)
}

// Check reads all of pd, which it does not change, and returns the first thing
// that makes it unusable: an *IndexError for an index outside its table (0 is
// never that), an attribute value nested deeper than MaxDepth, or a sample whose
// values and timestamps are both there and unequal in number.
//
// Payloads that break a recommendation of the format pass, and so do tables without a
// zero value: an index means the entry that is there.
func Check(pd pprofile.Profiles) error {
	c := checker{lengths: LengthsOf(pd.Dictionary())}
	c.dictionary(pd.Dictionary())
	for i, rp := range pd.ResourceProfiles().All() {
		c.attributeMap(rp.Resource().Attributes(), "resource_profiles[%d].resource", i)
		for j, sp := range rp.ScopeProfiles().All() {
			c.attributeMap(sp.Scope().Attributes(), "resource_profiles[%d].scope_profiles[%d].scope", i, j)
			for k, p := range sp.Profiles().All() {
				if c.err != nil {
					return c.err
				}
				c.profile(p, i, j, k)
			}
		}
	}
	return c.err
}

type checker struct {
	lengths Lengths
	err     error
}

// index checks one index. It formats the place only for an error.
func (c *checker) index(i int32, length int, table, place string, args ...int) {
	if bad(i, length) && c.err == nil {
		c.err = &IndexError{Where: placeOf(place, args), Index: i, Table: table, Len: length}
	}
}

// bad returns whether i, which is not 0, is outside a table of the given length.
func bad(i int32, length int) bool { return uint32(i) >= uint32(length) && i != 0 }

func placeOf(place string, args []int) string {
	values := make([]any, len(args))
	for i, a := range args {
		values[i] = a
	}
	return fmt.Sprintf(place, values...)
}

func (c *checker) indices(s pcommon.Int32Slice, length int, table, place string, args ...int) {
	for i := range s.Len() {
		if v := s.At(i); bad(v, length) {
			c.index(v, length, table, place+"[%d]", append(args[:len(args):len(args)], i)...)
			return
		}
	}
}

// checkDictionary is Check for the dictionary alone.
func checkDictionary(d pprofile.ProfilesDictionary) error {
	c := checker{lengths: LengthsOf(d)}
	c.dictionary(d)
	return c.err
}

func (c *checker) dictionary(d pprofile.ProfilesDictionary) {
	n := c.lengths
	for i, m := range d.MappingTable().All() {
		c.index(m.FilenameStrindex(), n.Strings, "string", "mapping_table[%d].filename_strindex", i)
		c.indices(m.AttributeIndices(), n.Attributes, "attribute", "mapping_table[%d].attribute_indices", i)
	}
	for i, l := range d.LocationTable().All() {
		c.index(l.MappingIndex(), n.Mappings, "mapping", "location_table[%d].mapping_index", i)
		for j, line := range l.Lines().All() {
			c.index(line.FunctionIndex(), n.Functions, "function", "location_table[%d].lines[%d].function_index", i, j)
		}
		c.indices(l.AttributeIndices(), n.Attributes, "attribute", "location_table[%d].attribute_indices", i)
	}
	for i, f := range d.FunctionTable().All() {
		c.index(f.NameStrindex(), n.Strings, "string", "function_table[%d].name_strindex", i)
		c.index(f.SystemNameStrindex(), n.Strings, "string", "function_table[%d].system_name_strindex", i)
		c.index(f.FilenameStrindex(), n.Strings, "string", "function_table[%d].filename_strindex", i)
	}
	for i, a := range d.AttributeTable().All() {
		c.index(a.KeyStrindex(), n.Strings, "string", "attribute_table[%d].key_strindex", i)
		c.index(a.UnitStrindex(), n.Strings, "string", "attribute_table[%d].unit_strindex", i)
		if c.err == nil && !Bounded(a.Value()) {
			c.err = fmt.Errorf("attribute_table[%d].value nests deeper than %d levels, or has a list of over %d keys", i, MaxDepth, MaxListEntries)
		}
	}
	for i, s := range d.StackTable().All() {
		c.indices(s.LocationIndices(), n.Locations, "location", "stack_table[%d].location_indices", i)
	}
}

func (c *checker) attributeMap(m pcommon.Map, place string, args ...int) {
	if m.Len() > MaxListEntries && c.err == nil {
		c.err = fmt.Errorf("%s has %d attributes, more than %d", placeOf(place, args), m.Len(), MaxListEntries)
	}
	for key, v := range m.All() {
		if c.err == nil && !Bounded(v) {
			c.err = fmt.Errorf("%s: attribute %q nests deeper than %d levels, or has a list of over %d keys",
				placeOf(place, args), key, MaxDepth, MaxListEntries)
		}
	}
}

const profilePlace = "resource_profiles[%d].scope_profiles[%d].profiles[%d]"

func (c *checker) profile(p pprofile.Profile, i, j, k int) {
	n := c.lengths
	c.index(p.SampleType().TypeStrindex(), n.Strings, "string", profilePlace+".sample_type.type_strindex", i, j, k)
	c.index(p.SampleType().UnitStrindex(), n.Strings, "string", profilePlace+".sample_type.unit_strindex", i, j, k)
	c.index(p.PeriodType().TypeStrindex(), n.Strings, "string", profilePlace+".period_type.type_strindex", i, j, k)
	c.index(p.PeriodType().UnitStrindex(), n.Strings, "string", profilePlace+".period_type.unit_strindex", i, j, k)
	c.indices(p.AttributeIndices(), n.Attributes, "attribute", profilePlace+".attribute_indices", i, j, k)
	samples := p.Samples()
	for s := range samples.Len() {
		sample := samples.At(s)
		if bad(sample.StackIndex(), n.Stacks) || bad(sample.LinkIndex(), n.Links) {
			c.index(sample.StackIndex(), n.Stacks, "stack", profilePlace+".samples[%d].stack_index", i, j, k, s)
			c.index(sample.LinkIndex(), n.Links, "link", profilePlace+".samples[%d].link_index", i, j, k, s)
		}
		if attributes := sample.AttributeIndices(); attributes.Len() != 1 || bad(attributes.At(0), n.Attributes) {
			c.indices(attributes, n.Attributes, "attribute", profilePlace+".samples[%d].attribute_indices", i, j, k, s)
		}
		values, times := sample.Values().Len(), sample.TimestampsUnixNano().Len()
		if values > 0 && times > 0 && values != times && c.err == nil {
			c.err = fmt.Errorf("%s has %d values and %d timestamps, which must be equally many",
				placeOf(profilePlace+".samples[%d]", []int{i, j, k, s}), values, times)
		}
		if c.err != nil {
			return
		}
	}
}
