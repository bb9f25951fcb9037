// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package foldedtranslator

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// Marshaler turns OTLP profiles of one sample type into folded stacks, in alphabetical
// order. Samples with equal frames are summed, and a timestamp without a value counts 1.
// Inlined functions are frames. A location without a function is its mapping and address.
// Its zero value is ready for use; it is safe for concurrent use.
type Marshaler struct{}

var _ pprofile.Marshaler = Marshaler{}

// SampleTypesError says that the profiles have several sample types.
type SampleTypesError struct {
	Types []string // type/unit
}

func (e *SampleTypesError) Error() string {
	return "folded stacks hold one sample type, these profiles have " + strings.Join(e.Types, ", ")
}

// MarshalProfiles does not change pd. The error is a *SampleTypesError if pd has several
// sample types. A sum that overflows int64 is an error, too.
func (Marshaler) MarshalProfiles(pd pprofile.Profiles) ([]byte, error) {
	if err := dictionary.Check(pd); err != nil {
		return nil, err
	}
	r := &reader{dict: pd.Dictionary(), stacks: map[int32]string{}}
	sums, types, fits := map[string]int64{}, map[string]bool{}, true
	for p := range sampletypes.ProfilesOf(pd) {
		types[r.text(p.SampleType().TypeStrindex())+"/"+r.text(p.SampleType().UnitStrindex())] = true
		for _, s := range p.Samples().All() {
			stack := r.stack(s.StackIndex())
			values := s.Values().AsRaw()
			if len(values) == 0 {
				values = []int64{int64(s.TimestampsUnixNano().Len())}
			}
			for _, v := range values {
				sum, ok := add(sums[stack], v)
				sums[stack], fits = sum, fits && ok
			}
		}
	}
	if all := slices.Sorted(maps.Keys(types)); len(all) > 1 {
		return nil, &SampleTypesError{Types: all}
	} else if !fits {
		return nil, fmt.Errorf("the sum of %s of a stack does not fit into 64 bits", all[0])
	}
	maps.DeleteFunc(sums, func(_ string, sum int64) bool { return sum == 0 })
	var out []byte
	numbers := 0 // stacks that end in one
	for i, stack := range slices.Sorted(maps.Keys(sums)) {
		if i == 0 && strings.HasPrefix(stack, string(byteOrderMark)) {
			out = append(out, byteOrderMark...) // of the text: that of the frame is then read
		}
		line := escapeEnds(stack)
		if endsInNumber([]byte(line)) {
			if numbers++; numbers == len(sums) { // so that not each line looks as if it had two values
				line = escapeNumber(line)
			}
		}
		out = append(append(out, line...), ' ')
		out = append(strconv.AppendInt(out, sums[stack], 10), '\n')
	}
	return out, nil
}

// add adds a value to a sum. ok is false if that overflows int64.
func add(sum, value int64) (_ int64, ok bool) {
	return sum + value, (sum+value > sum) == (value > 0) || value == 0
}

type reader struct {
	dict   pprofile.ProfilesDictionary
	stacks map[int32]string // folded, by index
}

func (r *reader) text(i int32) string { return dictionary.ValidString(r.dict.StringTable(), i) }

func (r *reader) stack(i int32) string {
	if folded, ok := r.stacks[i]; ok {
		return folded
	}
	var frames []string
	if int(i) < r.dict.StackTable().Len() {
		for _, l := range r.dict.StackTable().At(int(i)).LocationIndices().All() {
			if int(l) < r.dict.LocationTable().Len() {
				frames = r.appendFrames(frames, r.dict.LocationTable().At(int(l)))
			}
		}
	}
	if len(frames) == 0 {
		frames = []string{"[unknown]"}
	}
	slices.Reverse(frames)
	r.stacks[i] = strings.Join(frames, ";")
	return r.stacks[i]
}

// appendFrames appends the frames of a location, the leaf first.
func (r *reader) appendFrames(frames []string, l pprofile.Location) []string {
	for _, line := range l.Lines().All() {
		name := ""
		if i := int(line.FunctionIndex()); i < r.dict.FunctionTable().Len() {
			f := r.dict.FunctionTable().At(i)
			name = sampletypes.FunctionName(r.text(f.NameStrindex()), r.text(f.SystemNameStrindex()))
		}
		if name == "" {
			name = r.address(l)
		}
		frames = append(frames, escape.Replace(name))
	}
	if l.Lines().Len() == 0 {
		frames = append(frames, escape.Replace(r.address(l)))
	}
	return frames
}

// address names a location without a function.
func (r *reader) address(l pprofile.Location) string {
	file := ""
	if i := int(l.MappingIndex()); i < r.dict.MappingTable().Len() {
		file = r.text(r.dict.MappingTable().At(i).FilenameStrindex())
	}
	return sampletypes.AddressName(file, l.Address())
}
