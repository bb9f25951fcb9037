// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package fromotlp makes pprofs of OTLP profiles.
//
// [Converter.Scope] first groups the Profiles of a scope into pprofs, one sample type
// each. Then it makes each pprof: it joins the samples of its Profiles by identity
// {stack, set of attributes, link} and timestamp, one column of values for each sample
// type, and turns their attributes and links into labels.
package fromotlp

import (
	"fmt"
	"iter"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator/internal/semconv"
)

// Converter makes the pprofs of one payload.
//
// An index of the payload's dictionary says nothing about equality, as a dictionary may
// repeat entries. The remap therefore numbers each entry by its value: these numbers
// are called values below. The content is read from the payload.
type Converter struct {
	from   pprofile.ProfilesDictionary
	tables *dictionary.Tables
	remap  dictionary.Remap
	names  semconv.Labels
	labels map[int32][]label // by attribute value
	set    []int32
}

// New returns a Converter of a payload with the dictionary from, which must have passed
// dictionary.Check.
func New(from pprofile.ProfilesDictionary, names semconv.Labels) *Converter {
	c := &Converter{from: from, tables: dictionary.New(0), names: names, labels: map[int32][]label{}}
	c.remap.Reset(from, c.tables)
	return c
}

// Pprof is a pprof and the indices, in their scope, of the Profiles that it was made of.
type Pprof struct {
	*profile.Profile
	Profiles []int
}

// Scope yields the pprofs of sp, in the order of the first Profile of each. An error
// stands for a Profile or a pprof that cannot be converted. executable is the base name
// of the main binary, if it is known.
func (c *Converter) Scope(sp pprofile.ScopeProfiles, executable string) iter.Seq2[Pprof, error] {
	return func(yield func(Pprof, error) bool) {
		groups, failed := c.group(sp)
		for _, err := range failed {
			if !yield(Pprof{}, err) {
				return
			}
		}
		for _, g := range groups {
			p, err := c.convert(g, executable)
			made := Pprof{Profile: p}
			for _, m := range g.members {
				made.Profiles = append(made.Profiles, m.index)
			}
			if !yield(made, err) {
				return
			}
		}
	}
}

func (c *Converter) convert(g *group, executable string) (*profile.Profile, error) {
	p := g.header
	for _, column := range g.sortColumns() {
		p.SampleType = append(p.SampleType, &column.sampleType)
	}
	j := newJoin(c, p, g)
	for _, m := range g.members {
		j.startProfile(m.column.index)
		for i, s := range m.profile.Samples().All() {
			if err := j.addSample(s); err != nil {
				return nil, fmt.Errorf("profiles[%d].samples[%d]: %w", m.index, i, err)
			}
		}
	}
	p.Sample = j.samples()
	moveToFront(p.Mapping, executable)
	return p, nil
}

// attributes calls read with the key and value of each attribute. It fails if two have
// one key.
func (c *Converter) attributes(indices pcommon.Int32Slice, read func(key string, v pcommon.Value)) error {
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
func (c *Converter) attributeSet(indices pcommon.Int32Slice) (int32, error) {
	set := c.remap.AttributeSet(indices)
	if err := c.tables.TakeDuplicate(); err != nil {
		return 0, err
	}
	return set, c.tables.Err()
}

// text returns string i as valid UTF-8. An empty table has the empty string at 0.
func (c *Converter) text(i int32) string {
	return dictionary.ValidString(c.from.StringTable(), i)
}

// TextOf returns the text of the attribute with the given key, or "".
func TextOf(attributes pcommon.Map, key string) string {
	v, ok := attributes.Get(key)
	if !ok {
		return ""
	}
	return dictionary.ValidUTF8(v.AsString())
}
