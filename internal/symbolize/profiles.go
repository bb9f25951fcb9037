// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/ianlancetaylor/demangle"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize/symbols"
)

// The names of functions of C++ and Rust: as in the symbol table, without or with parameters.
const (
	DemangleNone  = "none"
	DemangleShort = "short"
	DemangleFull  = "full"
)

// The keys of GNU's build ID, and of the one that is made of a file, see symbols.FileHash.
const (
	buildIDKey = string(semconv.ProcessExecutableBuildIDGNUKey)
	hashKey    = string(semconv.ProcessExecutableBuildIDHtlhashKey)
)

// maxName is the logarithm of the longest demangled name: a symbol of 400 bytes can stand for one of a gigabyte.
var maxName = demangle.MaxLength(14)

var demangleOptions = map[string][]demangle.Option{
	DemangleShort: {demangle.NoParams, demangle.NoEnclosingParams, demangle.NoTemplateParams, maxName},
	DemangleFull:  {maxName},
}

// nameOf returns the name of a function without the suffixes of symbols of Go's assembler and of versioned symbols of
// libraries, such as read@GLIBC_2.2.5.
func nameOf(symbol string, demangleAs string) string {
	options, ok := demangleOptions[demangleAs]
	if !ok {
		return symbol
	}
	if at := strings.IndexByte(symbol, '@'); at > 0 {
		symbol = symbol[:at]
	}
	return demangle.Filter(strings.TrimSuffix(symbol, ".abi0"), options...)
}

// Profiles symbolizes the locations of a payload, and returns the number of locations without lines by outcome. It waits for
// files that the store searches for, until ctx is done; what is not there then stays as it is. Locations that have
// lines are not changed. What is added takes about MaxMemory of the store at most.
func Profiles(ctx context.Context, store *Store, pd pprofile.Profiles, demangleAs string) map[Outcome]int {
	p := &payload{dictionary: pd.Dictionary(), demangle: demangleAs, left: store.options.MaxMemory, outcomes: map[Outcome]int{}, copies: map[int32]int32{}, ofFrames: map[symbols.Frame]int32{}}
	byMapping := p.locations()
	if len(byMapping) == 0 {
		return p.outcomes
	}
	ids := map[int32]string{}
	for mapping := range byMapping {
		if id := cmp.Or(p.textOf(mapping, buildIDKey), store.buildIDOf(p.file(mapping))); validID.MatchString(id) {
			ids[mapping] = id
		}
	}
	store.prepare(ctx, slices.Sorted(maps.Values(ids)))
	for _, mapping := range slices.Sorted(maps.Keys(byMapping)) {
		if ids[mapping] == "" {
			p.outcomes[NoBuildID] += len(byMapping[mapping])
			continue
		}
		locations := byMapping[mapping]
		outcome := store.with(ids[mapping], func(t *symbols.Table) error { return p.symbolize(t, mapping, locations) })
		if outcome != Symbolized {
			p.outcomes[outcome] += len(locations)
			continue
		}
		if p.left < 0 || p.textOf(mapping, hashKey) != "" {
			continue
		}
		if hash := store.hashOf(p.file(mapping), p.textOf(mapping, buildIDKey)); hash != "" {
			p.setAttribute(mapping, hashKey, func(v pcommon.Value) { v.SetStr(hash) })
		}
	}
	p.replaceLeaves()
	return p.outcomes
}

// payload is the dictionary of one payload, and what is added to it.
type payload struct {
	dictionary pprofile.ProfilesDictionary
	demangle   string
	left       int64 // bytes that may still be added
	outcomes   map[Outcome]int

	leaves    map[int32]bool  // locations that are the leaf of a stack
	callers   map[int32]bool  // locations that are not
	copies    map[int32]int32 // of locations that are both, and have other lines as leaves
	strings   map[string]int32
	functions map[function]int32
	ofFrames  map[symbols.Frame]int32             // functions of frames without their line
	has       [len(sampletypes.MappingFlags)]bool // the lines added to one mapping
}

type function struct{ name, systemName, file int32 }

// locations returns the locations to symbolize by mapping, and finds out where they are in stacks.
func (p *payload) locations() map[int32][]int32 {
	table := p.dictionary.LocationTable()
	byMapping := map[int32][]int32{}
	wanted := map[int32]bool{}
	for i := 1; i < table.Len(); i++ {
		l := table.At(i)
		if l.Address() == 0 || l.Lines().Len() > 0 || int(l.MappingIndex()) >= p.dictionary.MappingTable().Len() || l.MappingIndex() < 0 {
			continue
		}
		wanted[int32(i)] = true
	}
	if len(wanted) == 0 {
		return nil
	}
	p.leaves, p.callers = map[int32]bool{}, map[int32]bool{}
	for _, stack := range p.dictionary.StackTable().All() {
		for i, location := range stack.LocationIndices().All() {
			switch {
			case !wanted[location]:
			case i == 0:
				p.leaves[location] = true
			default:
				p.callers[location] = true
			}
		}
	}
	for i := range int32(table.Len()) {
		if p.leaves[i] || p.callers[i] {
			mapping := table.At(int(i)).MappingIndex()
			byMapping[mapping] = append(byMapping[mapping], i)
		}
	}
	for _, locations := range byMapping { // neighbors are in one block of the table
		slices.SortFunc(locations, func(a, b int32) int { return cmp.Compare(table.At(int(a)).Address(), table.At(int(b)).Address()) })
	}
	return byMapping
}

// replaceLeaves puts copies in the place of the leaves that they were made of.
func (p *payload) replaceLeaves() {
	if len(p.copies) == 0 {
		return
	}
	for _, stack := range p.dictionary.StackTable().All() {
		if locations := stack.LocationIndices(); locations.Len() > 0 {
			if to, ok := p.copies[locations.At(0)]; ok {
				locations.SetAt(0, to)
			}
		}
	}
}

// textOf returns an attribute of a mapping, if it is a string.
func (p *payload) textOf(mapping int32, key string) string {
	for _, i := range p.dictionary.MappingTable().At(int(mapping)).AttributeIndices().All() {
		if k, value := p.attribute(i); k == key && value.Type() == pcommon.ValueTypeStr {
			return value.Str()
		}
	}
	return ""
}

// file returns the path of the file of a mapping, if it is absolute.
func (p *payload) file(mapping int32) string {
	if file := p.text(p.dictionary.MappingTable().At(int(mapping)).FilenameStrindex()); strings.HasPrefix(file, "/") {
		return file
	}
	return ""
}

// attribute returns an attribute. The key is empty if it has none, or there is no such attribute.
func (p *payload) attribute(i int32) (key string, value pcommon.Value) {
	if i < 0 || int(i) >= p.dictionary.AttributeTable().Len() {
		return "", value
	}
	a := p.dictionary.AttributeTable().At(int(i))
	return p.text(a.KeyStrindex()), a.Value()
}

func (p *payload) text(i int32) string {
	return dictionary.ValidString(p.dictionary.StringTable(), i)
}

// symbolize adds lines to locations of one mapping. The error is the first one of the table, which may have served some.
func (p *payload) symbolize(t *symbols.Table, mapping int32, locations []int32) (err error) {
	m := p.dictionary.MappingTable().At(int(mapping))
	place := symbols.Mapping{Start: m.MemoryStart(), Limit: m.MemoryLimit(), Offset: m.FileOffset()}
	lookUp := func(frames []symbols.Frame, address uint64) []symbols.Frame {
		frames, failed := t.Frames(frames[:0], address)
		err = cmp.Or(err, failed)
		return frames
	}
	var frames, leaf []symbols.Frame
	p.has = [len(sampletypes.MappingFlags)]bool{}
	for _, i := range locations {
		if p.left < 0 {
			p.outcomes[Failed]++
			continue
		}
		location := p.dictionary.LocationTable().At(int(i))
		address, ok := t.Address(place, location.Address())
		if !ok {
			p.outcomes[BadMapping]++
			continue
		}
		if p.callers[i] {
			frames = lookUp(frames, address-1)
		}
		if !p.callers[i] || len(frames) == 0 { // a signal interrupted the function at its start
			frames = lookUp(frames, address)
		}
		if p.callers[i] && p.leaves[i] {
			if leaf = lookUp(leaf, address); !slices.Equal(leaf, frames) {
				p.copies[i] = int32(p.dictionary.LocationTable().Len())
				copied := p.dictionary.LocationTable().AppendEmpty()
				location.CopyTo(copied)
				p.addLines(copied, leaf)
			}
		}
		switch {
		case len(frames) > 0:
			p.outcomes[Symbolized]++
			p.addLines(location, frames)
		case err != nil:
			p.outcomes[Failed]++
		default:
			p.outcomes[Unknown]++
		}
	}
	for i, flag := range sampletypes.MappingFlags {
		if p.has[i] {
			p.setAttribute(mapping, flag, func(v pcommon.Value) { v.SetBool(true) })
		}
	}
	return err
}

// What a line, or a string without its text and a function take at most, in bytes.
const (
	lineSize   = 48
	stringSize = 128
)

// addLines adds frames to a location.
func (p *payload) addLines(location pprofile.Location, frames []symbols.Frame) {
	for _, f := range frames {
		p.has = [...]bool{true, p.has[1] || f.File != "", p.has[2] || f.Line != 0, p.has[3] || len(frames) > 1}
		p.left -= lineSize
		line := location.Lines().AppendEmpty()
		line.SetFunctionIndex(p.function(f))
		line.SetLine(f.Line)
	}
}

// function returns the index of a function in the dictionary.
func (p *payload) function(f symbols.Frame) int32 {
	f.Line = 0
	index, ok := p.ofFrames[f]
	if !ok {
		index = p.addFunction(f)
		p.ofFrames[f] = index
	}
	return index
}

// addFunction returns the index of a function that the dictionary may have.
func (p *payload) addFunction(f symbols.Frame) int32 {
	if p.functions == nil {
		p.functions = map[function]int32{}
		if p.dictionary.FunctionTable().Len() == 0 {
			p.dictionary.FunctionTable().AppendEmpty() // index 0 is no function
		}
		for i, known := range p.dictionary.FunctionTable().All() {
			if known.StartLine() == 0 {
				p.functions[function{known.NameStrindex(), known.SystemNameStrindex(), known.FilenameStrindex()}] = int32(i)
			}
		}
	}
	key := function{p.string(nameOf(f.Function, p.demangle)), p.string(f.Function), p.string(f.File)}
	index, ok := p.functions[key]
	if !ok {
		index = int32(p.dictionary.FunctionTable().Len())
		added := p.dictionary.FunctionTable().AppendEmpty()
		added.SetNameStrindex(key.name)
		added.SetSystemNameStrindex(key.systemName)
		added.SetFilenameStrindex(key.file)
		p.functions[key] = index
	}
	return index
}

// string returns the index of a string in the dictionary.
func (p *payload) string(s string) int32 {
	if p.strings == nil {
		p.strings = map[string]int32{}
		for i, known := range p.dictionary.StringTable().All() {
			if _, ok := p.strings[known]; !ok {
				p.strings[known] = int32(i)
			}
		}
	}
	s = dictionary.ValidUTF8(s)
	index, ok := p.strings[s]
	if !ok {
		p.left -= stringSize + int64(len(s))
		index = int32(p.dictionary.StringTable().Len())
		p.dictionary.StringTable().Append(s)
		p.strings[s] = index
	}
	return index
}

// setAttribute sets an attribute of a mapping, in place of another value.
func (p *payload) setAttribute(mapping int32, key string, set func(pcommon.Value)) {
	attributes := p.dictionary.MappingTable().At(int(mapping)).AttributeIndices()
	kept := make([]int32, 0, attributes.Len()+1)
	for _, i := range attributes.All() {
		if k, _ := p.attribute(i); k != key {
			kept = append(kept, i)
		}
	}
	attribute := pprofile.NewKeyValueAndUnit()
	attribute.SetKeyStrindex(p.string(key))
	set(attribute.Value())
	index, _ := pprofile.SetAttribute(p.dictionary.AttributeTable(), attribute) // an error would be of its size
	attributes.FromRaw(append(kept, index))
}
