// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// newStacks returns the tree of the stacks of p with the values of the sample type at index. The sides of a difference are the positive
// values, and the negative ones without the sign.
func newStacks(ctx context.Context, p *profile.Profile, index int) (*Tree, error) {
	t := NewTree("(all)")
	locations := make(map[*profile.Location][]int32, len(p.Location))
	for number, s := range p.Sample {
		const often = 1000
		if number%often == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		at := int32(Root)
		for _, l := range slices.Backward(s.Location) {
			frames, found := locations[l]
			if !found {
				frames = t.framesOf(l)
				locations[l] = frames
			}
			for _, f := range frames {
				at = t.Child(at, f)
			}
		}
		t.Nodes[at].Self.add(Sides{max(s.Value[index], 0), max(-s.Value[index], 0)})
	}
	return t, nil
}

// framesOf returns the frames of a location, callers first.
func (t *Tree) framesOf(l *profile.Location) (frames []int32) {
	for _, line := range slices.Backward(l.Line) {
		f := Frame{}
		if function := line.Function; function != nil {
			f = Frame{function.Name, function.Filename, function.StartLine}
		}
		if f.Name == "" {
			f.Name = address(l)
		}
		frames = append(frames, t.Intern(f))
	}
	if len(l.Line) == 0 {
		frames = append(frames, t.Intern(Frame{Name: address(l)}))
	}
	return frames
}

// place writes the file and the line of a function.
func (f Frame) place() string {
	if f.Line > 0 {
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return f.File
}

// address names a location without a function.
func address(l *profile.Location) string {
	if l.Mapping == nil {
		return sampletypes.AddressName("", l.Address)
	}
	return sampletypes.AddressName(l.Mapping.File, l.Address)
}

// NameFunctions gives the functions of p the names by which they are shown.
func NameFunctions(p *profile.Profile) {
	for _, f := range p.Function {
		f.Name = sampletypes.FunctionName(f.Name, f.SystemName)
	}
}
