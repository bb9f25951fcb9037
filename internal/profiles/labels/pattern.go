// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package labels

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// Regular expressions come from outside, such as from a URL. A short one may make a large program: (x?){1000} is 10 bytes, and 4,000
// instructions. So the length is checked before an expression is parsed, and what compiling would make before it is compiled. Matching
// takes time in proportion to the instructions and the length of the text, and ends with its context.
const (
	// maxPattern is the length of the longest expression, in bytes.
	maxPattern = 8 << 10
	// maxInstructions is how many instructions a program may have. Making that many takes some 4 MiB.
	maxInstructions = 10_000
	// classSize is the instructions that a class of Unicode counts as: its table may take 10 KiB, and a range that
	// ignores case 2 ms.
	classSize = 256
)

// Pattern is a compiled expression.
type Pattern struct {
	*regexp.Regexp
	// Instructions is at least how many its program has.
	Instructions int
}

// compilePattern compiles an expression of the whole text, in which a dot matches newlines, too, into at most so many instructions.
func compilePattern(expression string, most int) (*Pattern, error) {
	size, err := checkPattern(expression, most)
	if err != nil {
		return nil, err
	}
	compiled, err := regexp.Compile("^(?s:" + expression + ")$")
	if err != nil {
		return nil, invalidPattern(expression, err)
	}
	return &Pattern{compiled, size}, nil
}

func invalidPattern(expression string, err error) error {
	reason := err.Error()
	if parsing, ok := errors.AsType[*syntax.Error](err); ok {
		reason = fmt.Sprintf("%s: %.60q", parsing.Code, parsing.Expr)
	}
	return fmt.Errorf("%.60q is no regular expression: %s", expression, reason)
}

// checkPattern is compilePattern without compiling: it returns how many instructions that would make at most.
func checkPattern(expression string, most int) (size int, err error) {
	if len(expression) > maxPattern {
		return 0, fmt.Errorf("%.60q is a regular expression of %d bytes: must have at most %d", expression, len(expression), maxPattern)
	}
	if size = classSize * unicodeClasses(expression); size <= most {
		parsed, err := syntax.Parse(expression, syntax.Perl)
		if err != nil {
			return 0, invalidPattern(expression, err)
		}
		const ends = 6 // start, failure, match, and the bounds of the whole text
		size += ends + instructions(parsed)
	}
	if size > most {
		return 0, fmt.Errorf("%.60q makes too large a program: regular expressions must have at most %d instructions in total, "+
			"of which a repetition has those of what it repeats each time", expression, maxInstructions)
	}
	return size, nil
}

// unicodeClasses returns how many classes and ranges an expression may have that reach beyond ASCII.
func unicodeClasses(expression string) (n int) {
	n = strings.Count(expression, `\p`) + strings.Count(expression, `\P`) + strings.Count(expression, `-\`)
	for i := range len(expression) - 1 {
		if expression[i] == '-' && expression[i+1] >= utf8.RuneSelf {
			n++
		}
	}
	return n
}

// instructions returns how many a part of an expression compiles to at most. It follows the compiler of regexp/syntax, and stops to
// count when there are far too many.
func instructions(part *syntax.Regexp) int {
	const tooMany = 1 << 30
	size := 0
	for _, sub := range part.Sub {
		size = min(size+instructions(sub), tooMany)
	}
	switch part.Op {
	case syntax.OpLiteral:
		return max(1, len(part.Rune))
	case syntax.OpCapture, syntax.OpStar, syntax.OpPlus:
		return size + 2
	case syntax.OpQuest:
		return size + 1
	case syntax.OpRepeat:
		return min((size+1)*max(1, part.Min, part.Max)+2, tooMany)
	case syntax.OpConcat:
		return max(1, size)
	case syntax.OpAlternate:
		return size + len(part.Sub)
	default:
		return 1
	}
}

// Match reports whether the pattern matches a text. It returns false when ctx ends: a caller looks at ctx before it uses what has
// matched.
func (p *Pattern) Match(ctx context.Context, text string) bool {
	if ctx.Err() != nil || !p.take(ctx, text) {
		return false
	}
	const quick = 1 << 20 // steps, in some milliseconds
	if len(text) <= quick/p.Instructions {
		return p.MatchString(text)
	}
	return p.MatchReader(&reader{ctx, *strings.NewReader(text)}) && ctx.Err() == nil
}

// reader reads a text until its context ends.
type reader struct {
	ctx context.Context
	strings.Reader
}

func (r *reader) ReadRune() (rune, int, error) {
	if r.ctx.Err() != nil {
		return 0, 0, io.EOF
	}
	return r.Reader.ReadRune()
}
