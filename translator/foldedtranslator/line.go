// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package foldedtranslator

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
)

var (
	byteOrderMark = []byte("\xef\xbb\xbf")

	errTwoValues = errors.New("each line has two values, as difffolded.pl writes them, and must have one; " +
		"compare the two files that it read, as with `otelprof top --base BEFORE AFTER`")
	// ErrUTF16 is the error of text in UTF-16.
	ErrUTF16 = errors.New("is text in UTF-16, as > of Windows PowerShell writes it: must be UTF-8; " +
		"have the profiler itself write the file, or redirect its output in cmd or in PowerShell 7.4 or later")
)

// IsUTF16 reports whether text starts with a byte order mark of UTF-16.
func IsUTF16(text []byte) bool {
	return bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff"))
}

// IsFolded reports whether the first line of text that is no comment is a stack and a value.
func IsFolded(text []byte) bool {
	r := lineReader{}
	for line := range bytes.Lines(bytes.TrimPrefix(text, byteOrderMark)) {
		if line = r.trim(line); len(line) > 0 {
			_, number := cutValue(line)
			_, err := parseAmount(number)
			return err == nil
		}
	}
	return false
}

// lineReader tells stacks from comments.
type lineReader struct {
	stacks   bool // there was one
	comments bool // there was one before the first stack
}

// comment is a line as Austin writes it before the stacks and after them. A frame may start likewise, so that comments count only
// in text that starts with one.
var comment = regexp.MustCompile(`^#\s*[\w.-]+:(\s|$)`)

// trim returns the part of a line that counts: nothing of a comment.
func (r *lineReader) trim(line []byte) []byte {
	line = bytes.TrimRight(line, " \t\r\n")
	if len(line) > 0 && line[0] == '#' && (r.comments || !r.stacks) && comment.Match(line) {
		r.comments = true
		return nil
	}
	r.stacks = r.stacks || len(line) > 0
	return line
}

// cutValue divides a line into a stack and a value. Without a value, the stack is nil.
func cutValue(line []byte) (stack, value []byte) {
	space := bytes.LastIndexAny(line, " \t")
	if stack = bytes.TrimRight(line[:max(space, 0)], " \t"); len(stack) == 0 {
		return nil, nil
	}
	return stack, line[space+1:]
}

// billion is how many parts a whole has in an amount.
const billion = 1_000_000_000

// amount is a decimal number. The parts have the sign of the number.
type amount struct{ whole, billionths int64 }

var errNumber = errors.New("must be a number, such as 12 or 12.5")

// parseAmount reads a whole number or one with decimals, of which it keeps nine.
func parseAmount(text []byte) (a amount, err error) {
	digits, decimals, fractional := bytes.Cut(text, []byte("."))
	if a.whole, err = strconv.ParseInt(string(digits), 10, 64); err != nil {
		return a, errNumber
	}
	if !fractional {
		return a, nil
	}
	for place := billion / 10; len(decimals) > 0; decimals, place = decimals[1:], place/10 {
		if decimals[0] < '0' || decimals[0] > '9' {
			return a, errNumber
		}
		a.billionths += int64(decimals[0]-'0') * int64(place)
	}
	if digits[0] == '-' {
		a.billionths = -a.billionths
	}
	return a, nil
}

// times multiplies an amount by a positive number. ok is false if that overflows int64.
func (a amount) times(n int64) (_ amount, ok bool) {
	if limit := math.MaxInt64 / n; a.whole > limit || a.whole < -limit {
		return a, false
	}
	magnitude := uint64(max(a.billionths, -a.billionths)) // #nosec G115 -- not negative
	high, low := bits.Mul64(magnitude, uint64(n))         // #nosec G115 -- positive
	whole, rest := bits.Div64(high, low, billion)         // billionths are less than a whole, so that it fits
	more, left := int64(whole), int64(rest)               // #nosec G115 -- less than n, and than a billion
	if a.billionths < 0 {
		more, left = -more, -left
	}
	sum, ok := add(a.whole*n, more)
	return amount{sum, left}, ok
}

// rounder makes whole numbers of amounts, one after the other. What one number gets too much or too little is added to the
// next one, so that the sum of all is at most half a unit off.
type rounder struct{ rest int64 } // billionths, less than a whole

func (r *rounder) round(a amount) (_ int64, ok bool) {
	r.rest += a.billionths
	switch {
	case r.rest >= billion/2:
		r.rest -= billion
		return add(a.whole, 1)
	case r.rest < -billion/2:
		r.rest += billion
		return add(a.whole, -1)
	}
	return a.whole, true
}

// endsInNumber reports whether the last word of a stack is a number, which then may be a first value.
func endsInNumber(stack []byte) bool {
	if len(stack) == 0 {
		return false
	}
	if end := stack[len(stack)-1]; end != '.' && (end < '0' || end > '9') {
		return false
	}
	_, last := cutValue(stack)
	if last == nil {
		return false
	}
	_, err := parseAmount(last)
	return err == nil
}

// escapeEnds returns a stack such that its line is no comment, and does not lose white space.
func escapeEnds(stack string) string {
	if comment.MatchString(stack) {
		stack = `\x23` + stack[1:]
	}
	text := strings.TrimRight(stack, " \t")
	return text + escapeSpace.Replace(stack[len(text):])
}

// escapeNumber returns a stack that ends in a number such that its line has one value.
func escapeNumber(stack string) string {
	start := strings.LastIndexAny(stack, " \t")
	return stack[:start] + escapeSpace.Replace(stack[start:start+1]) + stack[start+1:]
}

var escapeSpace = strings.NewReplacer(" ", `\x20`, "\t", `\x09`)

func valueError(value []byte) error {
	return fmt.Errorf("value is %q: %w", shorten(value), errNumber)
}
