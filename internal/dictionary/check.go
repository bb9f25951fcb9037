// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"bytes"
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
	_, err := CheckGrowth(pd)
	return err
}

// Growth is the most that a payload can add to any of Tables.
type Growth struct {
	Entries int
	Content int // bytes of their binary form
}

// CheckGrowth is Check. It also returns what pd can add to a table, if it is valid.
func CheckGrowth(pd pprofile.Profiles) (Growth, error) {
	c := checker{lengths: LengthsOf(pd.Dictionary())}
	c.dictionary(pd.Dictionary())
	for i, rp := range pd.ResourceProfiles().All() {
		c.attributeMap(rp.Resource().Attributes(), "resource_profiles[%d].resource", i)
		for j, sp := range rp.ScopeProfiles().All() {
			c.attributeMap(sp.Scope().Attributes(), "resource_profiles[%d].scope_profiles[%d].scope", i, j)
			for k, p := range sp.Profiles().All() {
				if c.err != nil {
					return Growth{}, c.err
				}
				c.profile(p, i, j, k)
				c.entries += 1 + p.Samples().Len() // attribute sets
			}
		}
	}
	n := c.lengths
	c.entries += n.Strings + n.Mappings + n.Locations + n.Functions + n.Links + n.Attributes + n.Stacks
	return Growth{Entries: c.entries, Content: c.content + maxFixed*c.entries}, c.err
}

type checker struct {
	lengths Lengths
	err     error
	entries int
	content int // bytes of what entries have any number of
}

// The most bytes that the fixed fields of an entry, a line and an index take in binary form.
const (
	maxFixed = 35
	maxLine  = 25
	maxIndex = 5
)

// index checks one index. It formats the place only for an error. Where there are many indices, bad is asked first:
// it is inlined.
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
	c.content += maxIndex * s.Len()
	for i := range s.Len() {
		if v := s.At(i); bad(v, length) {
			c.index(v, length, table, place+"[%d]", append(args[:len(args):len(args)], i)...)
			return
		}
	}
}

// CheckAttributeSets returns an error for a sample, Profile, mapping or location of pd that has two attributes of one
// key, apart from the attributes of samples for which drop is true, by index. pd must have passed Check, and
// have no string references.
func CheckAttributeSets(pd pprofile.Profiles, drop []bool) error {
	d := pd.Dictionary()
	if d.AttributeTable().Len() < 2 {
		return nil
	}
	c := setChecker{dictionary: d}
	for i, m := range d.MappingTable().All() {
		if err := c.check(m.AttributeIndices(), nil); err != nil {
			return fmt.Errorf("mapping_table[%d]: %w", i, err)
		}
	}
	locations := d.LocationTable()
	for i := range locations.Len() {
		if set := locations.At(i).AttributeIndices(); set.Len() > 1 {
			if err := c.check(set, nil); err != nil {
				return fmt.Errorf("location_table[%d]: %w", i, err)
			}
		}
	}
	for i, rp := range pd.ResourceProfiles().All() {
		for j, sp := range rp.ScopeProfiles().All() {
			for k, p := range sp.Profiles().All() {
				err := c.check(p.AttributeIndices(), nil)
				samples := p.Samples()
				for s := 0; s < samples.Len() && err == nil; s++ {
					if set := samples.At(s).AttributeIndices(); set.Len() > 1 {
						err = c.check(set, drop)
					}
				}
				if err != nil {
					return fmt.Errorf(profilePlace+": %w", i, j, k, err)
				}
			}
		}
	}
	return nil
}

type setChecker struct {
	dictionary pprofile.ProfilesDictionary
	keys       []int32 // by attribute: a number that attributes of one key share, or -1 of a zero value
	firsts     []int32 // by key: the attribute of the present set that has it, plus one
}

func (c *setChecker) check(indices pcommon.Int32Slice, drop []bool) (err error) {
	if c.keys == nil {
		c.numberKeys()
	}
	for _, i := range indices.All() {
		if c.keyOf(i) < 0 || int(i) < len(drop) && drop[i] {
			continue
		}
		first := &c.firsts[c.keys[i]]
		if *first != 0 && *first != i+1 && err == nil && !c.equal(*first-1, i) {
			err = &DuplicateKeyError{Key: c.key(i)}
		}
		*first = i + 1
	}
	for _, i := range indices.All() {
		if c.keyOf(i) >= 0 {
			c.firsts[c.keys[i]] = 0
		}
	}
	return err
}

func (c *setChecker) numberKeys() {
	numbers := map[string]int32{}
	table := c.dictionary.AttributeTable()
	c.keys = make([]int32, table.Len())
	for i := range c.keys {
		a, key := table.At(i), c.key(int32(i))
		if key == "" && c.unit(a) == "" && a.Value().Type() == pcommon.ValueTypeEmpty {
			c.keys[i] = -1
			continue
		}
		n, ok := numbers[key]
		if !ok {
			n = int32(len(numbers))
			numbers[key] = n
		}
		c.keys[i] = n
	}
	c.firsts = make([]int32, len(numbers))
}

// keyOf is -1 for index 0 of an empty table, too.
func (c *setChecker) keyOf(i int32) int32 {
	if int(i) >= len(c.keys) {
		return -1
	}
	return c.keys[i]
}

func (c *setChecker) key(i int32) string {
	return ValidString(c.dictionary.StringTable(), c.dictionary.AttributeTable().At(int(i)).KeyStrindex())
}

func (c *setChecker) unit(a pprofile.KeyValueAndUnit) string {
	return ValidString(c.dictionary.StringTable(), a.UnitStrindex())
}

// equal returns whether two attributes of one key are equal.
func (c *setChecker) equal(i, j int32) bool {
	a, b := c.dictionary.AttributeTable().At(int(i)), c.dictionary.AttributeTable().At(int(j))
	return c.unit(a) == c.unit(b) && bytes.Equal(AppendPdata(nil, a.Value()), AppendPdata(nil, b.Value()))
}

func (c *checker) dictionary(d pprofile.ProfilesDictionary) {
	n := c.lengths
	texts, locations, functions, stacks := d.StringTable(), d.LocationTable(), d.FunctionTable(), d.StackTable()
	for i := range n.Strings {
		c.text(texts.At(i))
	}
	for i, m := range d.MappingTable().All() {
		c.index(m.FilenameStrindex(), n.Strings, "string", "mapping_table[%d].filename_strindex", i)
		c.indices(m.AttributeIndices(), n.Attributes, "attribute", "mapping_table[%d].attribute_indices", i)
	}
	for i := range n.Locations {
		l := locations.At(i)
		lines := l.Lines()
		c.index(l.MappingIndex(), n.Mappings, "mapping", "location_table[%d].mapping_index", i)
		c.content += maxLine * lines.Len()
		for j := range lines.Len() {
			if f := lines.At(j).FunctionIndex(); bad(f, n.Functions) {
				c.index(f, n.Functions, "function", "location_table[%d].lines[%d].function_index", i, j)
			}
		}
		if attributes := l.AttributeIndices(); attributes.Len() > 0 {
			c.indices(attributes, n.Attributes, "attribute", "location_table[%d].attribute_indices", i)
		}
	}
	for i := range n.Functions {
		f := functions.At(i)
		if bad(f.NameStrindex(), n.Strings) || bad(f.SystemNameStrindex(), n.Strings) || bad(f.FilenameStrindex(), n.Strings) {
			c.index(f.NameStrindex(), n.Strings, "string", "function_table[%d].name_strindex", i)
			c.index(f.SystemNameStrindex(), n.Strings, "string", "function_table[%d].system_name_strindex", i)
			c.index(f.FilenameStrindex(), n.Strings, "string", "function_table[%d].filename_strindex", i)
		}
	}
	for i, a := range d.AttributeTable().All() {
		c.index(a.KeyStrindex(), n.Strings, "string", "attribute_table[%d].key_strindex", i)
		c.index(a.UnitStrindex(), n.Strings, "string", "attribute_table[%d].unit_strindex", i)
		if !c.value(a.Value(), MaxDepth) && c.err == nil {
			c.err = fmt.Errorf("attribute_table[%d].value nests deeper than %d levels, or has a list of over %d keys", i, MaxDepth, MaxListEntries)
		}
	}
	for i := range n.Stacks {
		c.indices(stacks.At(i).LocationIndices(), n.Locations, "location", "stack_table[%d].location_indices", i)
	}
}

// text counts a string, of which each byte may become the three of U+FFFD.
func (c *checker) text(s string) { c.content += 3*len(s) + maxIndex }

// value reports whether v nests at most depth levels, of lists that are not too long.
func (c *checker) value(v pcommon.Value, depth int) bool {
	c.content += 10 // a tag, and a number or a length
	switch v.Type() {
	case pcommon.ValueTypeStr:
		c.text(v.Str())
	case pcommon.ValueTypeBytes:
		c.content += v.Bytes().Len()
	case pcommon.ValueTypeSlice:
		for _, e := range v.Slice().All() {
			if depth == 0 || !c.value(e, depth-1) {
				return false
			}
		}
	case pcommon.ValueTypeMap:
		if v.Map().Len() > MaxListEntries {
			return false
		}
		for key, e := range v.Map().All() {
			if c.text(key); depth == 0 || !c.value(e, depth-1) {
				return false
			}
		}
	}
	return true
}

func (c *checker) attributeMap(m pcommon.Map, place string, args ...int) {
	if m.Len() > MaxListEntries && c.err == nil {
		c.err = fmt.Errorf("%s has %d attributes, more than %d", placeOf(place, args), m.Len(), MaxListEntries)
	}
	for key, v := range m.All() {
		if !c.value(v, MaxDepth) && c.err == nil {
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
		if attributes := sample.AttributeIndices(); attributes.Len() > 1 || attributes.Len() == 1 && bad(attributes.At(0), n.Attributes) {
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

// Bounded reports whether Check accepts the attribute value v.
func Bounded(v pcommon.Value) bool { return new(checker).value(v, MaxDepth) }

// BoundedMap reports whether Check accepts the attributes m of a resource or scope.
func BoundedMap(m pcommon.Map) bool {
	c := checker{}
	c.attributeMap(m, "")
	return c.err == nil
}
