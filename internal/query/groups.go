// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"encoding/binary"
	"errors"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
)

// groups are the parts of a payload whose samples have the same values of some labels. The value of a sample is that of its first
// attribute that is the label, then of its Profile, then of its resource.
type groups struct {
	// values are those of each group.
	values [][]string
	// err says that there are too many groups. The rest of the payload has none.
	err error

	labels     map[string][]int // the places of a label, by its name
	attributes []labelValue     // by index of the attribute; nil if none is one of the labels
	texts      []string         // of values
	numbers    map[string]int32 // in texts
	known      map[string]int   // groups, by the numbers of their values
	room       int64            // for further groups, in bytes

	resource  pprofile.ResourceProfiles
	inherited []int32 // the values of the resource, by number
	set       []int32 // those of a sample
	key       []byte
}

// labelValue is an attribute.
type labelValue struct {
	places []int // those of the labels that it is
	number int32 // of its value
}

// newGroups returns the groups of a payload, which take at most room bytes.
func newGroups(pd pprofile.Profiles, by []string, room int64) *groups {
	g := &groups{labels: map[string][]int{}, numbers: map[string]int32{}, known: map[string]int{}, room: room, set: make([]int32, len(by))}
	for i, name := range by {
		g.labels[name] = append(g.labels[name], i)
	}
	table, ofKey := pd.Dictionary().AttributeTable(), map[int32][]int{}
	for k := 1; k < table.Len() && len(by) > 0; k++ {
		a := table.At(k)
		places, known := ofKey[a.KeyStrindex()]
		if !known {
			places = g.placesOf(dictionary.ValidString(pd.Dictionary().StringTable(), a.KeyStrindex()))
			ofKey[a.KeyStrindex()] = places
		}
		if text, ok := labels.Text(a.Value()); ok && len(places) > 0 {
			if g.attributes == nil {
				g.attributes = make([]labelValue, table.Len())
			}
			g.attributes[k] = labelValue{places, g.numberOf(text)}
		}
	}
	return g
}

// placesOf returns the places of the labels that an attribute with a key is.
func (g *groups) placesOf(key string) []int {
	if name := labels.Name(key); name != key {
		return slices.Concat(g.labels[key], g.labels[name])
	}
	return g.labels[key]
}

func (g *groups) numberOf(text string) int32 {
	number, known := g.numbers[text]
	if !known {
		number = int32(len(g.texts))
		g.texts, g.numbers[text] = append(g.texts, text), number
	}
	return number
}

// startResource reads the values that samples of a resource inherit. As in labels.Find, an attribute with the name itself counts before
// one with a similar name.
func (g *groups) startResource(rp pprofile.ResourceProfiles) {
	if len(g.set) == 0 || g.inherited != nil && rp == g.resource {
		return
	}
	const similar, exact = 1, 2
	found := make([]int8, len(g.set))
	g.resource, g.inherited = rp, make([]int32, len(g.set))
	for i := range g.inherited {
		g.inherited[i] = g.numberOf("")
	}
	for key, v := range rp.Resource().Attributes().All() {
		read := func(name string, match int8) {
			for _, i := range g.labels[name] {
				if found[i] < match {
					text, _ := labels.Text(v)
					g.inherited[i], found[i] = g.numberOf(text), match
				}
			}
		}
		read(key, exact)
		read(labels.Name(key), similar)
	}
}

// apart reports whether samples of one Profile may be of several groups.
func (g *groups) apart() bool { return g.attributes != nil }

// ofProfile returns the group of a Profile whose samples are not apart.
func (g *groups) ofProfile() int { return g.of(g.inherited) }

// noSample is a sample without attributes.
var noSample = pprofile.NewSample()

// ofProfileAlone returns the group of a Profile by its own attributes and those of its resource.
func (g *groups) ofProfileAlone(p pprofile.Profile) int {
	if g.attributes == nil {
		return g.ofProfile()
	}
	return g.ofSample(p, noSample)
}

// ofSample returns the group of a sample.
func (g *groups) ofSample(p pprofile.Profile, sample pprofile.Sample) int {
	const none = -1
	for i := range g.set {
		g.set[i] = none
	}
	for _, indices := range [...]pcommon.Int32Slice{sample.AttributeIndices(), p.AttributeIndices()} {
		for k := range indices.Len() {
			i := int(indices.At(k))
			if i <= 0 || i >= len(g.attributes) {
				continue
			}
			for _, place := range g.attributes[i].places {
				if g.set[place] == none {
					g.set[place] = g.attributes[i].number
				}
			}
		}
	}
	for i := range g.set {
		if g.set[i] == none {
			g.set[i] = g.inherited[i]
		}
	}
	return g.of(g.set)
}

// errManyGroups says that groups take too much memory.
var errManyGroups = errors.New("too many groups")

// of returns the group with these values.
func (g *groups) of(numbers []int32) int {
	g.key = g.key[:0]
	for _, number := range numbers {
		g.key = binary.NativeEndian.AppendUint32(g.key, uint32(number))
	}
	group, known := g.known[string(g.key)]
	if known {
		return group
	}
	const groupSize, valueSize = 150, 20 // with its place in the map
	if g.room -= groupSize + int64(len(numbers))*valueSize; g.room < 0 {
		g.err = errManyGroups
		return 0
	}
	values := make([]string, len(numbers))
	for i, number := range numbers {
		values[i] = g.texts[number]
	}
	g.known[string(g.key)] = len(g.values)
	g.values = append(g.values, values)
	return len(g.values) - 1
}
