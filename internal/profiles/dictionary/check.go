// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"bytes"
	"cmp"
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
// never that), an attribute value nested deeper than MaxDepth, a resource or scope with more than MaxListEntries
// attributes, or a sample whose values and timestamps are both there and unequal in number.
//
// Payloads that break a recommendation of the format pass, and so do tables without a
// zero value: an index means the entry that is there.
func Check(pd pprofile.Profiles) error {
	c := checker{lengths: lengthsOf(pd.Dictionary())}
	c.profiles(pd)
	return c.err
}

// CheckToMerge is Check and ResolveStrings. It also rejects a sample, Profile, mapping or location that has two attributes of
// one key, apart from the attributes of samples for which drop is true, by index.
func CheckToMerge(pd pprofile.Profiles, drop []bool) (resolved pprofile.Profiles, err error) {
	c := checker{lengths: lengthsOf(pd.Dictionary()), merges: true, drop: drop}
	if c.profiles(pd); c.err != nil {
		return pd, c.err
	}
	if resolved, err = ResolveStrings(pd); err != nil {
		return pd, err
	}
	if resolved != pd { // text in place of references is equal or not
		c = checker{lengths: c.lengths, merges: true, drop: drop}
		c.profiles(resolved)
	}
	return resolved, cmp.Or(c.err, c.duplicate)
}

type checker struct {
	lengths   perTable[int]
	merges    bool // sets are checked, samples without the attributes to drop
	drop      []bool
	sets      SetChecker
	err       error
	duplicate error // of the first set with two attributes of one key
}

func (c *checker) profiles(pd pprofile.Profiles) {
	c.sets.Dictionary = pd.Dictionary()
	c.values(pd) // before sets, which compare them
	c.dictionary(pd.Dictionary())
	for i, rp := range pd.ResourceProfiles().All() {
		for j, sp := range rp.ScopeProfiles().All() {
			for k, p := range sp.Profiles().All() {
				if c.err != nil {
					return
				}
				c.profile(p, i, j, k)
			}
		}
	}
}

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

// firstBad returns the place of the first of s that is bad, or -1.
func firstBad(s pcommon.Int32Slice, length int) int {
	for i := range s.Len() {
		if bad(s.At(i), length) {
			return i
		}
	}
	return -1
}

// mayBeBad returns false for none and for one valid attribute, as most samples and locations have: it is inlined.
func (c *checker) mayBeBad(s pcommon.Int32Slice) bool {
	return s.Len() > 1 || s.Len() == 1 && bad(s.At(0), c.lengths.attributes)
}

// attributes checks the attribute_indices of what is at place.
func (c *checker) attributes(s pcommon.Int32Slice, drop []bool, place string, args ...int) {
	if n := firstBad(s, c.lengths.attributes); n >= 0 {
		c.index(s.At(n), c.lengths.attributes, "attribute", place+".attribute_indices[%d]", append(args[:len(args):len(args)], n)...)
	}
	if !c.merges || c.err != nil || c.duplicate != nil {
		return
	}
	if err := c.sets.Check(s, drop); err != nil {
		c.duplicate = fmt.Errorf("%s: %w", placeOf(place, args), err)
	}
}

func (c *checker) dictionary(d pprofile.ProfilesDictionary) {
	n := c.lengths
	for i, a := range d.AttributeTable().All() { // before the sets of them
		c.index(a.KeyStrindex(), n.strings, "string", "attribute_table[%d].key_strindex", i)
		c.index(a.UnitStrindex(), n.strings, "string", "attribute_table[%d].unit_strindex", i)
	}
	for i, m := range d.MappingTable().All() {
		c.index(m.FilenameStrindex(), n.strings, "string", "mapping_table[%d].filename_strindex", i)
		c.attributes(m.AttributeIndices(), nil, "mapping_table[%d]", i)
	}
	c.locations(d.LocationTable())
	for i, f := range d.FunctionTable().All() {
		if bad(f.NameStrindex(), n.strings) || bad(f.SystemNameStrindex(), n.strings) || bad(f.FilenameStrindex(), n.strings) {
			c.index(f.NameStrindex(), n.strings, "string", "function_table[%d].name_strindex", i)
			c.index(f.SystemNameStrindex(), n.strings, "string", "function_table[%d].system_name_strindex", i)
			c.index(f.FilenameStrindex(), n.strings, "string", "function_table[%d].filename_strindex", i)
		}
	}
	for i, s := range d.StackTable().All() {
		indices := s.LocationIndices()
		if j := firstBad(indices, n.locations); j >= 0 {
			c.index(indices.At(j), n.locations, "location", "stack_table[%d].location_indices[%d]", i, j)
		}
	}
}

// locations is a function of its own, because as a part of dictionary it takes 30 % more instructions.
func (c *checker) locations(table pprofile.LocationSlice) {
	mappings, functions := c.lengths.mappings, c.lengths.functions
	for i, l := range table.All() {
		if m := l.MappingIndex(); bad(m, mappings) {
			c.index(m, mappings, "mapping", "location_table[%d].mapping_index", i)
		}
		for j, line := range l.Lines().All() {
			if f := line.FunctionIndex(); bad(f, functions) {
				c.index(f, functions, "function", "location_table[%d].lines[%d].function_index", i, j)
			}
		}
		if attributes := l.AttributeIndices(); c.mayBeBad(attributes) {
			c.attributes(attributes, nil, "location_table[%d]", i)
		}
	}
}

// value reports whether v nests at most depth levels, of lists that are not too long.
func (c *checker) value(v pcommon.Value, depth int) bool {
	switch v.Type() {
	case pcommon.ValueTypeSlice:
		ok := depth > 0
		for i := 0; ok && i < v.Slice().Len(); i++ {
			ok = c.value(v.Slice().At(i), depth-1)
		}
		return ok
	case pcommon.ValueTypeMap:
		if depth == 0 || v.Map().Len() > MaxListEntries {
			return false
		}
		for _, e := range v.Map().All() {
			if !c.value(e, depth-1) {
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
	c.index(p.SampleType().TypeStrindex(), n.strings, "string", profilePlace+".sample_type.type_strindex", i, j, k)
	c.index(p.SampleType().UnitStrindex(), n.strings, "string", profilePlace+".sample_type.unit_strindex", i, j, k)
	c.index(p.PeriodType().TypeStrindex(), n.strings, "string", profilePlace+".period_type.type_strindex", i, j, k)
	c.index(p.PeriodType().UnitStrindex(), n.strings, "string", profilePlace+".period_type.unit_strindex", i, j, k)
	c.attributes(p.AttributeIndices(), nil, profilePlace, i, j, k)
	c.samples(p.Samples(), i, j, k)
}

// samples checks those of the Profile at this place.
func (c *checker) samples(samples pprofile.SampleSlice, i, j, k int) {
	stacks, links := c.lengths.stacks, c.lengths.links
	for s, sample := range samples.All() {
		if bad(sample.StackIndex(), stacks) || bad(sample.LinkIndex(), links) {
			c.index(sample.StackIndex(), stacks, "stack", profilePlace+".samples[%d].stack_index", i, j, k, s)
			c.index(sample.LinkIndex(), links, "link", profilePlace+".samples[%d].link_index", i, j, k, s)
		}
		if attributes := sample.AttributeIndices(); c.mayBeBad(attributes) {
			c.attributes(attributes, c.drop, profilePlace+".samples[%d]", i, j, k, s)
		}
		values, times := sample.Values().Len(), sample.TimestampsUnixNano().Len()
		if times > 0 && values > 0 && values != times && c.err == nil {
			c.err = fmt.Errorf("%s has %d values and %d timestamps, which must be equally many",
				placeOf(profilePlace+".samples[%d]", []int{i, j, k, s}), values, times)
		}
	}
}

// CheckValues is the part of Check that concerns attribute values: it takes little time.
func CheckValues(pd pprofile.Profiles) error {
	var c checker
	c.values(pd)
	return c.err
}

func (c *checker) values(pd pprofile.Profiles) {
	for i, a := range pd.Dictionary().AttributeTable().All() {
		if !c.value(a.Value(), MaxDepth) && c.err == nil {
			c.err = fmt.Errorf("attribute_table[%d].value nests deeper than %d levels, or has a list of over %d keys", i, MaxDepth, MaxListEntries)
		}
	}
	for i, rp := range pd.ResourceProfiles().All() {
		c.attributeMap(rp.Resource().Attributes(), "resource_profiles[%d].resource", i)
		for j, sp := range rp.ScopeProfiles().All() {
			c.attributeMap(sp.Scope().Attributes(), "resource_profiles[%d].scope_profiles[%d].scope", i, j)
		}
	}
}

// DuplicateKeyError says that one set of attributes has two attributes of one key.
type DuplicateKeyError struct{ Key string }

func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("attribute_indices refer to two attributes with the key %q; keys must be unique", e.Key)
}

// SetChecker finds sets with two attributes of one key. Zero values are none, and equal attributes are one.
type SetChecker struct {
	Dictionary pprofile.ProfilesDictionary

	keys   []int32 // by attribute: a number that attributes of one key share, or -1 of a zero value
	firsts []int32 // by key: the attribute of the present set that has it, plus one

	different [2]int32 // the strings of the keys of the last set of two: most sets have the same
}

// Check returns a *DuplicateKeyError if two attributes have one key, apart from those for which drop is true, by
// index. Of no length, drop drops none. The dictionary and the indices must have passed the package's Check.
func (c *SetChecker) Check(indices pcommon.Int32Slice, drop []bool) (err error) {
	n := indices.Len()
	if n < 2 || c.Dictionary.AttributeTable().Len() == 0 {
		return nil
	}
	if n == 2 { // usual, and needs no numbers
		table := c.Dictionary.AttributeTable()
		keys := [2]int32{table.At(int(indices.At(0))).KeyStrindex(), table.At(int(indices.At(1))).KeyStrindex()}
		if keys[0] != keys[1] && (keys == c.different || c.text(keys[0]) != c.text(keys[1])) {
			c.different = keys
			return nil
		}
	}
	if c.keys == nil {
		c.numberKeys()
	}
	for j := range n {
		i := indices.At(j)
		key := c.keys[i]
		if key < 0 || int(i) < len(drop) && drop[i] {
			continue
		}
		if first := c.firsts[key] - 1; first >= 0 && first != i && err == nil && !c.equal(first, i) {
			err = &DuplicateKeyError{Key: c.key(i)}
		}
		c.firsts[key] = i + 1
	}
	for j := range n {
		if key := c.keys[indices.At(j)]; key >= 0 {
			c.firsts[key] = 0
		}
	}
	return err
}

func (c *SetChecker) numberKeys() {
	numbers := map[string]int32{}
	table := c.Dictionary.AttributeTable()
	c.keys, c.firsts = make([]int32, table.Len()), make([]int32, table.Len())
	for i := range table.Len() {
		a, key := table.At(i), c.key(int32(i))
		if key == "" && c.text(a.UnitStrindex()) == "" && a.Value().Type() == pcommon.ValueTypeEmpty {
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
}

func (c *SetChecker) key(i int32) string {
	return c.text(c.Dictionary.AttributeTable().At(int(i)).KeyStrindex())
}

func (c *SetChecker) text(i int32) string { return ValidString(c.Dictionary.StringTable(), i) }

// equal returns whether two attributes of one key are equal.
func (c *SetChecker) equal(i, j int32) bool {
	a, b := c.Dictionary.AttributeTable().At(int(i)), c.Dictionary.AttributeTable().At(int(j))
	return c.text(a.UnitStrindex()) == c.text(b.UnitStrindex()) &&
		bytes.Equal(AppendPdata(nil, a.Value()), AppendPdata(nil, b.Value()))
}
