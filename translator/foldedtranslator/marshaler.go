// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package foldedtranslator

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary/check"
	"github.com/otelcol-profiles/otelcol-profiles/internal/validutf8"
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
// sample types.
func (Marshaler) MarshalProfiles(pd pprofile.Profiles) ([]byte, error) {
	if err := check.Profiles(pd); err != nil {
		return nil, err
	}
	r := &reader{dict: pd.Dictionary(), stacks: map[int32]string{}}
	types, sums := map[string]bool{}, map[string]int64{}
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				types[r.text(p.SampleType().TypeStrindex())+"/"+r.text(p.SampleType().UnitStrindex())] = true
				for _, s := range p.Samples().All() {
					if err := add(sums, r.stack(s.StackIndex()), s); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	if len(types) > 1 {
		return nil, &SampleTypesError{Types: slices.Sorted(maps.Keys(types))}
	}
	var out []byte
	for _, stack := range slices.Sorted(maps.Keys(sums)) {
		if sums[stack] != 0 {
			out = append(append(out, stack...), ' ')
			out = append(strconv.AppendInt(out, sums[stack], 10), '\n')
		}
	}
	return out, nil
}

// add adds the values of s to those of its stack.
func add(sums map[string]int64, stack string, s pprofile.Sample) error {
	sum := sums[stack]
	if s.Values().Len() == 0 {
		sum += int64(s.TimestampsUnixNano().Len())
	}
	for _, v := range s.Values().All() {
		if (v > 0) != (sum+v > sum) && v != 0 {
			return errors.New("the sum of the values of a stack overflows int64")
		}
		sum += v
	}
	sums[stack] = sum
	return nil
}

type reader struct {
	dict   pprofile.ProfilesDictionary
	stacks map[int32]string // folded, by index
}

func (r *reader) text(i int32) string {
	return validutf8.At(r.dict.StringTable(), i)
}

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
			if name = r.text(f.NameStrindex()); name == "" {
				name = r.text(f.SystemNameStrindex())
			}
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
	switch {
	case file == "" && l.Address() == 0:
		return "[unknown]"
	case file == "":
		return fmt.Sprintf("0x%x", l.Address())
	default:
		return fmt.Sprintf("[%s] 0x%x", path.Base(file), l.Address())
	}
}
