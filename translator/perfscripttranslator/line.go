// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscripttranslator

import (
	"bytes"
	"math"
	"slices"
	"strconv"
)

// header is the first line of a sample. Its texts are parts of the line.
type header struct {
	comm   []byte
	pid    int64 // -1 if the line does not say
	tid    int64
	cpu    int64  // -1 if the line does not say
	time   uint64 // nanoseconds of perf's clock
	period int64  // -1 if the line does not say
	event  []byte // may be empty
	rest   []byte // behind the event: fields of a tracepoint, or a frame
}

// maxTime is the largest time, in seconds: more would not fit into 63 bits of nanoseconds.
const maxTime = math.MaxInt64/1_000_000_000 - 1

// parseHeader reads a line such as
//
//	comm  pid/tid [cpu] seconds.fraction:  period event: rest
//
// of which pid, cpu, period, event and rest may be missing. The name of a thread may have spaces.
func parseHeader(line []byte) (h header, ok bool) {
	if len(line) == 0 || line[0] == '\t' || line[0] == '#' {
		return h, false
	}
	before, after, ok := h.cutTime(line)
	if !ok {
		return h, false
	}
	before = bytes.TrimRight(before, " ")
	h.pid, h.cpu, h.period = -1, -1, -1
	if len(before) > 0 && before[len(before)-1] == ']' {
		start := bytes.LastIndexByte(before, '[')
		if start < 0 {
			return h, false
		}
		if h.cpu, ok = parseInt(before[start+1 : len(before)-1]); !ok {
			return h, false
		}
		before = bytes.TrimRight(before[:start], " ")
	}
	ids := before[bytes.LastIndexByte(before, ' ')+1:]
	h.comm = bytes.TrimSpace(before[:len(before)-len(ids)])
	pid, tid, both := bytes.Cut(ids, []byte("/"))
	if !both {
		tid = pid
	} else if h.pid, ok = parseInt(pid); !ok {
		return h, false
	}
	if h.tid, ok = parseInt(tid); !ok {
		return h, false
	}
	return h, h.parseEvent(after)
}

// cutTime finds the time, and returns what is before and behind it.
func (h *header) cutTime(line []byte) (before, after []byte, ok bool) {
	const leastFraction, mostFraction = 6, 9 // digits
	for colon := 0; ; colon++ {
		next := bytes.IndexByte(line[colon:], ':')
		if next < 0 {
			return nil, nil, false
		}
		colon += next
		start := bytes.LastIndexByte(line[:colon], ' ') + 1
		seconds, fraction, found := bytes.Cut(line[start:colon], []byte("."))
		isFraction := found && len(fraction) >= leastFraction && len(fraction) <= mostFraction && isDigits(fraction)
		if start == 0 || !isFraction || !isDigits(seconds) {
			continue
		}
		whole, ok := parseInt(seconds)
		if !ok || whole > maxTime {
			return nil, nil, false
		}
		part, _ := parseInt(fraction)
		for range mostFraction - len(fraction) {
			part *= 10
		}
		h.time = uint64(whole)*1e9 + uint64(part)
		return line[:start], line[colon+1:], true
	}
}

// parseEvent reads what is behind the time.
func (h *header) parseEvent(text []byte) bool {
	text = bytes.TrimLeft(text, " ")
	word, rest := cutWord(text)
	if period, ok := parseInt(word); ok && isDigits(word) {
		next, behind := cutWord(bytes.TrimLeft(rest, " "))
		if len(next) > 1 && next[len(next)-1] == ':' {
			h.period, word, rest = period, next, behind
		}
	}
	switch {
	case len(word) > 1 && word[len(word)-1] == ':':
		h.event, h.rest = word[:len(word)-1], bytes.TrimSpace(rest)
		return !bytes.HasPrefix(h.event, []byte("PERF_RECORD_"))
	case len(text) == 0:
		return true
	default: // no event is printed, but a frame
		h.rest = bytes.TrimSpace(text)
		_, isFrame := parseFrame(h.rest)
		return isFrame
	}
}

func cutWord(text []byte) (word, rest []byte) {
	end := bytes.IndexByte(text, ' ')
	if end < 0 {
		return text, nil
	}
	return text[:end], text[end:]
}

func isDigits(text []byte) bool {
	for _, b := range text {
		if b < '0' || b > '9' {
			return false
		}
	}
	return len(text) > 0
}

func parseInt(text []byte) (int64, bool) {
	const longest = 20 // characters
	if len(text) > longest {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}

// baseName is the name of an event without its modifiers, such as cycles of cycles:u.
func baseName(event []byte) []byte {
	if colon := bytes.LastIndexByte(event, ':'); colon > 0 && len(bytes.Trim(event[colon+1:], "ukhpPHGSDWIeb")) == 0 {
		return event[:colon]
	}
	return event
}

// isTracepoint reports whether an event has a name such as sched:sched_switch. Then fields follow.
func isTracepoint(event []byte) bool { return bytes.IndexByte(baseName(event), ':') > 0 }

// frame is a line of a stack. Its texts are parts of the line.
type frame struct {
	address uint64
	symbol  []byte // empty if unknown
	file    []byte // empty if unknown
	inlined bool   // into the function of the next line
}

const (
	unknown = "[unknown]"
	inlined = " (inlined)"
)

// parseFrame reads a frame such as
//
//	ffffffff8105443a native_write_msr_safe+0xa ([kernel.kallsyms])
func parseFrame(text []byte) (f frame, ok bool) {
	const digits = 16
	word, rest := cutWord(text)
	if len(word) > digits {
		return f, false
	}
	address, err := strconv.ParseUint(string(word), 16, 64)
	if err != nil {
		return f, false
	}
	f.address = address
	rest = bytes.TrimSpace(rest)
	if name, found := bytes.CutSuffix(rest, []byte(inlined)); found {
		rest, f.inlined = name, true
	} else if start := startOfFile(rest); start >= 0 {
		f.file = withoutOffset(rest[start+1 : len(rest)-1])
		rest = bytes.TrimRight(rest[:start], " ")
	}
	f.symbol = withoutOffset(rest)
	if string(f.symbol) == unknown {
		f.symbol = nil
	}
	if string(f.file) == unknown {
		f.file = nil
	}
	return f, true
}

// startOfFile returns where the parenthesis at the end of a frame starts, or -1. A file that was deleted has one in it.
func startOfFile(text []byte) int {
	if len(text) == 0 || text[len(text)-1] != ')' {
		return -1
	}
	depth := 0
	for i, c := range slices.Backward(text) {
		switch c {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				if i > 0 && text[i-1] != ' ' {
					return -1 // of the arguments of a function
				}
				return i
			}
		}
	}
	return -1
}

// withoutOffset returns the name of symbol+0x12.
func withoutOffset(name []byte) []byte {
	plus := bytes.LastIndex(name, []byte("+0x"))
	if plus <= 0 {
		return name
	}
	if _, err := strconv.ParseUint(string(name[plus+3:]), 16, 64); err != nil {
		return name
	}
	return name[:plus]
}

// parseLine reads a line that follows a frame and says where that is in the source: file.c:12.
func parseLine(text []byte) (file []byte, line int64, ok bool) {
	colon := bytes.LastIndexByte(text, ':')
	if colon <= 0 {
		return nil, 0, false
	}
	line, ok = parseInt(text[colon+1:])
	if string(text[:colon]) == "??" {
		return nil, 0, ok
	}
	return text[:colon], max(line, 0), ok
}

// IsScript reports whether text is the output of perf script: after lines of a header, which start with a number
// sign, comes a sample.
func IsScript(text []byte) bool {
	const most = 64 << 10 // bytes of a header
	text = text[:min(len(text), most)]
	if bytes.HasPrefix(text, []byte("# ========\n# captured on")) {
		return true
	}
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case len(line) == 0 || line[0] == '#':
		case bytes.IndexFunc(line, func(r rune) bool { return r < ' ' }) >= 0:
			return false
		default:
			h, ok := parseHeader(line)
			return ok && (len(h.event) > 0 || len(h.rest) > 0)
		}
	}
	return false
}
