// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package fromotlp makes pprofs of OTLP profiles.
//
// [All] first groups the Profiles of a scope into pprofs, one sample type each. Then it
// makes each pprof: it joins the samples of its Profiles by identity
// {stack, set of attributes, link} and timestamp, one column of values for each sample
// type, and turns their attributes and links into labels. It also has the conventions that both directions of the translation
// follow: keys of attributes, and the labels that stand for a link or a timestamp.
package fromotlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
)

// converter makes the pprofs of one payload.
//
// An index of the payload's dictionary says nothing about equality, as a dictionary may
// repeat entries. The remap therefore numbers each entry by its value: these numbers
// are called values below. The content is read from the payload.
type converter struct {
	ctx    context.Context
	from   pprofile.ProfilesDictionary
	tables *dictionary.Tables
	remap  dictionary.Remap
	sets   dictionary.SetChecker
	names  Labels
	labels map[int32][]label // by attribute value
	set    []int32
	// valuesLeft is how many values further samples may have.
	valuesLeft int
}

// ErrMaxValues says that the pprofs have more than MaxValues values.
var ErrMaxValues = errors.New("the pprofs have too many values")

// Pprof is a pprof, and where in the payload the Profiles are that it was made of.
type Pprof struct {
	*profile.Profile
	Resource int   // index of the ResourceProfiles
	Scope    int   // index of the ScopeProfiles in it
	Profiles []int // indices of the Profiles in that
}

// All yields the pprofs of pd, in the order of the first Profile of each: without sample types and pprofs that have no
// samples if omitEmpty, and with as many values together as maxValues says, unless it is 0. An error stands for a Profile
// or a pprof that cannot be converted, or for all of pd. Once ctx has ended, that is its error.
func All(ctx context.Context, pd pprofile.Profiles, omitEmpty bool, maxValues int) iter.Seq2[Pprof, error] {
	return func(yield func(Pprof, error) bool) {
		if err := dictionary.Check(pd); err != nil {
			yield(Pprof{}, err)
			return
		}
		pd, err := dictionary.ResolveStrings(pd)
		if err != nil {
			yield(Pprof{}, err)
			return
		}
		c := &converter{
			ctx: ctx, from: pd.Dictionary(), tables: dictionary.New(), sets: dictionary.SetChecker{Dictionary: pd.Dictionary()},
			names: NewLabels("", "", ""), labels: map[int32][]label{}, valuesLeft: cmp.Or(maxValues, math.MaxInt),
		}
		c.remap.Reset(c.from, c.tables)
		for i, rp := range pd.ResourceProfiles().All() {
			executable := BaseName(dictionary.TextOf(rp.Resource().Attributes(), ExecutableName))
			for j, sp := range rp.ScopeProfiles().All() {
				for _, g := range c.group(sp) {
					columns := g.columns(omitEmpty)
					if omitEmpty && len(columns) == 0 && g.err == nil {
						continue
					}
					p, err := c.convert(g, columns, executable)
					if err != nil {
						err = fmt.Errorf("resource_profiles[%d].scope_profiles[%d].%w", i, j, err)
					}
					if !yield(Pprof{Profile: p, Resource: i, Scope: j, Profiles: g.indices}, err) {
						return
					}
				}
			}
		}
	}
}

// attributes calls read with the key and value of each attribute. It fails if two have
// one key.
func (c *converter) attributes(indices pcommon.Int32Slice, read func(key string, v pcommon.Value)) error {
	if _, err := c.attributeSet(indices); err != nil {
		return err
	}
	for _, i := range indices.All() {
		if c.remap.Attribute(i) != 0 {
			a := c.from.AttributeTable().At(int(i))
			read(c.text(a.KeyStrindex()), a.Value())
		}
	}
	return nil
}

// attributeSet returns the value of a set of attributes. It fails if two have one key.
func (c *converter) attributeSet(indices pcommon.Int32Slice) (int32, error) {
	if err := c.sets.Check(indices, nil); err != nil {
		return 0, err
	}
	return c.remap.AttributeSet(indices, nil), c.tables.Err()
}

// text returns string i as valid UTF-8. An empty table has the empty string at 0.
func (c *converter) text(i int32) string { return dictionary.ValidString(c.from.StringTable(), i) }

// textOf returns the text of a value as valid UTF-8.
func textOf(v pcommon.Value) string { return dictionary.ValidUTF8(v.AsString()) }

// builder makes one pprof: its locations, functions and mappings, each when it is first
// used, and its samples.
type builder struct {
	*converter
	pprof     *profile.Profile
	locations map[int32]*profile.Location // by value
	functions map[int32]*profile.Function
	mappings  map[int32]*profile.Mapping

	maxValues  int // of the pprof
	identities dictionary.Samples
	parts      []parts // by number of an identity
	samples    map[event]*profile.Sample
}

// parts are the parts of an identity as pprof has them.
type parts struct {
	stack  []*profile.Location
	labels []label
}

// event is an observation of an identity at a time. That without a timestamp has repeat -1.
type event struct {
	identity int32
	repeat   int    // how many equal events came before it in the same Profile
	time     uint64 // nanoseconds since the epoch
}

// maxSparseness is how many zeros a pprof may hold for each value of the Profiles,
// beyond the first freeValues. OTLP leaves zeros out: without a limit, a small payload
// with thousands of sample types could take all memory.
//
// checkEvery is after how many samples the context is looked at.
const (
	checkEvery    = 4096
	maxSparseness = 64
	freeValues    = 1 << 20
)

// convert makes the pprof of a group with the sample types columns.
func (c *converter) convert(g *group, columns []int, executable string) (*profile.Profile, error) {
	if g.err != nil {
		return nil, g.err
	}
	b := &builder{
		converter: c, pprof: g.header, maxValues: freeValues,
		locations: map[int32]*profile.Location{}, functions: map[int32]*profile.Function{}, mappings: map[int32]*profile.Mapping{},
		samples: map[event]*profile.Sample{},
	}
	for _, m := range g.members {
		for _, s := range m.profile.Samples().All() {
			b.maxValues += (maxSparseness + 1) * max(1, s.TimestampsUnixNano().Len())
		}
	}
	for _, number := range columns {
		b.pprof.SampleType = append(b.pprof.SampleType, &profile.ValueType{Type: g.types[number].Type, Unit: g.types[number].Unit})
	}
	if err := c.ctx.Err(); err != nil {
		return nil, err
	}
	for member, m := range g.members {
		column, _ := slices.BinarySearch(columns, m.number)
		repeats := map[event]int{} // how often the Profile had an event, by its first
		for i, s := range m.profile.Samples().All() {
			if i%checkEvery == checkEvery-1 && c.ctx.Err() != nil {
				return nil, c.ctx.Err()
			}
			if err := b.add(s, column, repeats); err != nil {
				return nil, fmt.Errorf("profiles[%d].samples[%d]: %w", g.indices[member], i, err)
			}
		}
	}
	moveToFront(b.pprof.Mapping, executable)
	return b.pprof, nil
}
