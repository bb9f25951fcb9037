// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotracetranslator

import (
	"encoding/binary"
	"strings"

	"golang.org/x/exp/trace"
)

// stacks numbers stacks by their content, across generations. Number 0 is the empty stack, which also stands for one that is
// not known.
type stacks struct {
	frames     []frame
	frameOf    map[frame]int32
	entries    []stack
	entryOf    map[string]int32      // by the numbers of its frames, four bytes each
	generation map[trace.Stack]int32 // those of the current generation
	commons    map[[2]int32]int32    // what common returned
	size       int                   // of texts and keys, in bytes

	read []int32
	key  []byte
}

// frame is a function and a line in it, 0 if that is not known. Addresses are left out: they differ between builds, and all
// frames have lines.
type frame struct {
	function, file string
	line           uint64
}

type stack struct {
	frames    []int32 // leaf first
	collector bool    // of a goroutine of the garbage collector
}

func newStacks() stacks {
	s := stacks{frameOf: map[frame]int32{}, entryOf: map[string]int32{}, generation: map[trace.Stack]int32{}, commons: map[[2]int32]int32{}}
	s.intern() // the empty one
	return s
}

// nextGeneration forgets what is valid in one generation only.
func (s *stacks) nextGeneration() { clear(s.generation) }

// held is about how much memory s takes, in bytes.
func (s *stacks) held() int {
	const ofFrame, ofStack, ofNumber = 160, 128, 48
	return s.size + ofFrame*len(s.frames) + ofStack*len(s.entries) + ofNumber*(len(s.generation)+len(s.commons))
}

// number returns the number of a stack of the current generation.
func (s *stacks) number(of trace.Stack) int32 {
	if of == trace.NoStack {
		return 0
	}
	if number, known := s.generation[of]; known {
		return number
	}
	s.read = s.read[:0]
	for f := range of.Frames() {
		s.read = append(s.read, s.frame(frame{f.Func, f.File, f.Line}))
	}
	number := s.intern()
	s.generation[of] = number
	return number
}

func (s *stacks) frame(f frame) int32 {
	number, known := s.frameOf[f]
	if !known {
		number = int32(len(s.frames))
		s.frames = append(s.frames, f)
		s.frameOf[f] = number
		s.size += len(f.function) + len(f.file)
	}
	return number
}

// intern returns the number of the stack with the frames in s.read.
func (s *stacks) intern() int32 {
	s.key = s.key[:0]
	for _, f := range s.read {
		s.key = binary.NativeEndian.AppendUint32(s.key, uint32(f))
	}
	if number, known := s.entryOf[string(s.key)]; known {
		return number
	}
	number := int32(len(s.entries))
	entry := stack{frames: append([]int32(nil), s.read...)}
	if n := len(s.read); n > 0 {
		root := s.frames[s.read[n-1]].function
		entry.collector = strings.HasPrefix(root, "runtime.gcBgMark") || root == "runtime.bgsweep" || root == "runtime.bgscavenge"
	}
	s.entries = append(s.entries, entry)
	s.entryOf[string(s.key)] = number
	s.size += 2 * len(s.key)
	return number
}

// isCollector reports whether a stack is that of a goroutine of the garbage collector.
func (s *stacks) isCollector(number int32) bool { return s.entries[number].collector }

// common returns the callers that two stacks of a goroutine have in common. In the last of them, it was at another line in
// between. If one of them is not known, that is the function that the goroutine was started with.
func (s *stacks) common(a, b int32) int32 {
	if a == b {
		return a
	}
	const mostCommons = 64 << 10
	key := [2]int32{a, b}
	number, known := s.commons[key]
	if !known {
		number = s.findCommon(s.entries[a].frames, s.entries[b].frames)
		if len(s.commons) == mostCommons {
			clear(s.commons)
		}
		s.commons[key] = number
	}
	return number
}

func (s *stacks) findCommon(a, b []int32) int32 {
	s.read = s.read[:0]
	if len(a) == 0 {
		a, b = b, nil
	}
	if len(b) == 0 {
		b = a[len(a)-1:]
	}
	n := 0 // frames that are equal, from the root
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	if n < min(len(a), len(b)) {
		f, g := s.frames[a[len(a)-1-n]], s.frames[b[len(b)-1-n]]
		if f.function == g.function && f.file == g.file {
			f.line = 0
			s.read = append(s.read, s.frame(f))
		}
	}
	s.read = append(s.read, a[len(a)-n:]...)
	return s.intern()
}
