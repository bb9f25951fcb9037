// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package labels

import (
	"context"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hostile are expressions that are short and make much of what they repeat.
var hostile = []string{
	strings.Repeat("(x?){1000}", 3), strings.Repeat("(x?){1000}", maxPattern/10), "((x?){100}){10}" + strings.Repeat("(y{0,1000})?", 10),
	strings.Repeat("x{1000}", 100), "(" + strings.Repeat(`(\pL?){999}|`, 500) + ")*", strings.Repeat(`\PC`, maxPattern/3), `[` + strings.Repeat(`\PC`, maxPattern/3) + `]`,
	`(?i)[` + strings.Repeat(`B-𞥂`, maxPattern/6) + `]`, `(?i)` + strings.Repeat(`[B-\x{1e942}]`, maxPattern/14), strings.Repeat("x", maxPattern+1),
	strings.Repeat("(x?){1000}", 100_000), strings.Repeat("(", maxPattern), strings.Repeat("a|", 1<<20),
}

func TestHostilePatternsAreRejectedBeforeTheyAreCompiled_A2(t *testing.T) {
	for _, expression := range hostile {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		_, err := compilePattern(expression, maxInstructions)
		require.Error(t, err, "%.40s", expression)
		assert.Less(t, len(err.Error()), 500)
		assert.Less(t, time.Since(start), time.Second, "%.40s", expression)
		runtime.ReadMemStats(&after)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20), "%.40s", expression)
	}
}

func TestErrorsNameTheLimit(t *testing.T) {
	for expression, want := range map[string]string{
		strings.Repeat("x", 9000): "is a regular expression of 9000 bytes: must have at most 8192",
		"(x?){1000}{10}":          "is no regular expression: invalid nested repetition operator",
		hostile[0]:                `"(x?){1000}(x?){1000}(x?){1000}" makes too large a program: regular expressions must have at most 10000 instructions in total`,
		"(":                       `"(" is no regular expression: missing closing ): "("`,
		"a)(b":                    "is no regular expression: unexpected )",
	} {
		_, err := compilePattern(expression, maxInstructions)
		require.ErrorContains(t, err, want)
	}
	_, err := compilePattern("checkout", 3)
	require.ErrorContains(t, err, "must have at most 10000 instructions in total", "what others have left")
}

// expression returns a random one.
func expression(r *rand.Rand, depth int) string {
	atoms := []string{"a", "xyz", ".", "[a-f]", "[^a]", `\pL`, `\d`, "^", "$", `\b`, "", "(?i:ab)", "é", `\Q.+\E`, `[^\x00-\x{10FFFF}]`}
	if depth == 0 {
		return atoms[r.IntN(len(atoms))]
	}
	sub := func() string { return expression(r, r.IntN(depth)) }
	switch r.IntN(8) {
	case 0:
		return "(" + sub() + ")"
	case 1, 2:
		return sub() + sub() + sub()
	case 3:
		return "(?:" + sub() + "|" + sub() + "|" + sub() + ")"
	case 4:
		return "(?:" + sub() + ")" + []string{"*", "+", "?", "*?", "??"}[r.IntN(5)]
	case 5:
		return "(?:" + sub() + "){" + strconv.Itoa(r.IntN(9)) + "}"
	case 6:
		return "(?:" + sub() + "){" + strconv.Itoa(r.IntN(5)) + ",}"
	default:
		least := r.IntN(5)
		return "(?:" + sub() + "){" + strconv.Itoa(least) + "," + strconv.Itoa(least+r.IntN(5)) + "}"
	}
}

func TestInstructionsAreAtLeastThoseOfTheProgram(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		text := expression(r, 5)
		size, err := checkPattern(text, 1<<40)
		if err != nil {
			continue // it repeats too often for the parser
		}
		parsed, err := syntax.Parse("^(?s:"+text+")$", syntax.Perl)
		require.NoError(t, err, text)
		program, err := syntax.Compile(parsed.Simplify())
		require.NoError(t, err, text)
		require.GreaterOrEqual(t, size-classSize*unicodeClasses(text), len(program.Inst), text)
	}
}

func TestLongTextsMatchAsShortOnes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		p, err := compilePattern(expression(r, 4), maxInstructions)
		if err != nil {
			continue
		}
		text := strings.Repeat([]string{"a", "ab", "xyz", "é\n", "\xff", "4 "}[r.IntN(6)], r.IntN(40))
		want := regexp.MustCompile(p.String()).MatchString(text)
		assert.Equal(t, want, p.Match(t.Context(), text), "%s on %q", p, text)
		p.Instructions = 1 << 21 // as if it were large
		assert.Equal(t, want, p.Match(t.Context(), text), "%s on %q", p, text)
	}
}

// TestMatchingEndsWithItsRequest: the pattern is as large as one may be, and all of its program is at work for each byte.
func TestMatchingEndsWithItsRequest_A2(t *testing.T) {
	p, err := compilePattern(strings.Repeat("x?", 4000)+"y", maxInstructions)
	require.NoError(t, err)
	text := strings.Repeat("x", 20_000)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	start := time.Now()
	for range 1000 { // minutes, but for its end
		assert.False(t, p.Match(ctx, text))
	}
	assert.Less(t, time.Since(start), 2*time.Second)
	assert.False(t, p.Match(ctx, ""), "not at all after the end")
}
