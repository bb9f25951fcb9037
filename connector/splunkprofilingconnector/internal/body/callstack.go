// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Frame is a line of a call stack.
type Frame struct {
	Function string // with its class or module
	File     string // "" if it is unknown
	Line     int64  // 0 if it is unknown
}

// CallStack is a body that is text.
type CallStack struct {
	ThreadName  string
	ThreadID    int64 // 0 if it is unknown
	ThreadOSID  int64 // 0 if it is unknown
	ThreadState string
	Frames      []Frame // the leaf first
}

// maxShown bounds the part of a line that an error shows, in bytes.
const maxShown = 80

// ParseCallStack parses a body that is text: a line about the thread, a line with its
// state, both of which may be empty, and a line for each frame, the leaf first. A Java agent
// also writes lines about locks, which are left out. The error names the line.
func ParseCallStack(text string) (CallStack, error) {
	var s CallStack
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		switch {
		case number == 1 && !isFrame(line):
			s.thread(line)
		case number == 2 && !isFrame(line):
			s.state(line)
		case line == "" || strings.HasPrefix(line, "- "):
		default:
			frame, err := parseFrame(line)
			if err != nil {
				return CallStack{}, fmt.Errorf("line %d: %q: %w", number, line[:min(len(line), maxShown)], err)
			}
			s.Frames = append(s.Frames, frame)
		}
	}
	if len(s.Frames) == 0 {
		return CallStack{}, errors.New("no frame, want a line such as \"at namespace.function(file:line)\"")
	}
	return s, nil
}

// isFrame reports whether one of the first two lines is a frame: an agent may leave out the
// lines about the thread.
func isFrame(line string) bool { return strings.HasPrefix(line, "at ") }

// thread reads the line about the thread, as a JVM prints it:
//
//	"pool-1" #49 prio=5 os_prio=31 cpu=0.12ms elapsed=8.50s tid=0x7fde nid=0xba03 runnable
func (s *CallStack) thread(line string) {
	if end := strings.LastIndexByte(line, '"'); end > 0 && line[0] == '"' {
		s.ThreadName, line = line[1:end], line[end+1:]
	}
	for word := range strings.FieldsSeq(line) {
		if number, ok := strings.CutPrefix(word, "#"); ok && s.ThreadID == 0 {
			s.ThreadID, _ = strconv.ParseInt(number, 10, 64)
		}
		if number, ok := strings.CutPrefix(word, "nid="); ok {
			s.ThreadOSID, _ = strconv.ParseInt(number, 0, 64)
		}
	}
}

// state reads the line with the state: the text after a colon, up to a space.
func (s *CallStack) state(line string) {
	_, state, _ := strings.Cut(line, ":")
	s.ThreadState, _, _ = strings.Cut(strings.TrimSpace(state), " ")
}

// parseFrame reads "at namespace.function(file:line:column)". Both "at " and the place may be
// incomplete: "(file)", "(Native Method)", "(unknown)", "(file:line col:7)".
func parseFrame(line string) (Frame, error) {
	line = strings.TrimPrefix(line, "at ")
	// A function may hold parentheses of its own, a file rarely does.
	open := strings.LastIndexByte(line, '(')
	if open <= 0 || !strings.HasSuffix(line, ")") {
		return Frame{}, errors.New(`must be "at namespace.function(file:line)"`)
	}
	f := Frame{Function: strings.TrimSpace(line[:open])}
	file, _, _ := strings.Cut(line[open+1:len(line)-1], " col:")
	// A line follows the file, and a column may follow it. A file may hold colons.
	for range 2 {
		i := strings.LastIndexByte(file, ':')
		if i < 0 {
			break
		}
		number, err := strconv.ParseInt(file[i+1:], 10, 32)
		if err != nil {
			break
		}
		file, f.Line = file[:i], max(number, 0)
	}
	if file != "unknown" && file != "Unknown Source" {
		f.File = file
	}
	return f, nil
}
