// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package labels

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Matcher selects the values of a label.
type Matcher struct {
	Name string

	value   string
	pattern *Pattern // of the whole value; nil to compare it with value
	negated bool
	kept    kept // of the pattern
}

// Equal returns a Matcher of one value.
func Equal(name, value string) *Matcher { return &Matcher{Name: name, value: value} }

// Matches reports whether a value is selected. What it returns after the end of ctx means nothing.
func (m *Matcher) Matches(ctx context.Context, value string) bool {
	if m.pattern != nil {
		matches, known := m.kept.find(value)
		if !known {
			if matches = m.pattern.Match(ctx, value); ctx.Err() == nil {
				m.kept.add(strings.Clone(value), matches)
			}
		}
		return matches != m.negated
	}
	return value == m.value != m.negated
}

// Same reports whether two matchers select the same values of the same label.
func Same(a, b *Matcher) bool {
	pattern := func(m *Matcher) string {
		if m.pattern == nil {
			return ""
		}
		return m.pattern.String()
	}
	return a.Name == b.Name && a.value == b.value && a.negated == b.negated && (a.pattern == nil) == (b.pattern == nil) && pattern(a) == pattern(b)
}

const (
	// maxSelector is the length in bytes of the longest selector.
	maxSelector = 16 << 10
	// maxMatchers is the number of matchers that a selector, or several together, may have.
	maxMatchers = 100
)

// Check returns an error if the matchers of several selectors are too many together.
func Check(matchers []*Matcher) error {
	size := 0
	for _, m := range matchers {
		if m.pattern != nil {
			size += m.pattern.Instructions
		}
	}
	switch {
	case len(matchers) > maxMatchers:
		return errMatchers
	case size > maxInstructions:
		return fmt.Errorf("regular expressions must have at most %d instructions in total", maxInstructions)
	}
	return nil
}

var errMatchers = fmt.Errorf("must have at most %d labels", maxMatchers)

// ParseSelector parses a selector such as {service_name="checkout", pod=~"a|b"}. Braces may be missing. Names with other
// characters than letters, digits, _, ., - and / are quoted, too.
func ParseSelector(text string) ([]*Matcher, error) {
	if len(text) > maxSelector {
		return nil, fmt.Errorf("has %d bytes: must have at most %d", len(text), maxSelector)
	}
	p := parser{rest: strings.TrimSpace(text), instructions: maxInstructions}
	if inner, braced := strings.CutPrefix(p.rest, "{"); braced {
		if inner, braced = strings.CutSuffix(inner, "}"); !braced {
			return nil, errors.New(`must end with }, as in {service_name="checkout"}`)
		}
		p.rest = inner
	}
	var matchers []*Matcher
	for p.skipSpace(); p.rest != ""; p.skipSpace() {
		m, err := p.matcher()
		if err != nil {
			return nil, fmt.Errorf(`%w, as in {service_name="checkout", pod=~"a|b"}`, err)
		}
		if matchers = append(matchers, m); len(matchers) > maxMatchers {
			return nil, errMatchers
		}
		if p.skipSpace(); !p.skip(",") && p.rest != "" {
			return nil, fmt.Errorf("must have a comma before %.20q", p.rest)
		}
	}
	return matchers, nil
}

// parser reads a selector.
type parser struct {
	rest         string
	instructions int // that further regular expressions may have
}

func (p *parser) skipSpace() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

func (p *parser) skip(prefix string) (found bool) {
	p.rest, found = strings.CutPrefix(p.rest, prefix)
	return found
}

// matcher reads a name, an operator and a quoted value.
func (p *parser) matcher() (*Matcher, error) {
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	p.skipSpace()
	for _, operator := range [...]string{"=~", "!~", "!=", "="} {
		if !p.skip(operator) {
			continue
		}
		p.skipSpace()
		m := &Matcher{Name: name, negated: operator[0] == '!'}
		m.value, err = p.quoted()
		if err == nil && strings.HasSuffix(operator, "~") {
			err = p.compile(m)
		}
		if err != nil {
			return nil, fmt.Errorf("label %.60q: %w", name, err)
		}
		return m, nil
	}
	return nil, fmt.Errorf("label %.60q must be followed by =, !=, =~ or !~", name)
}

// compile sets the pattern of a matcher, whose value is a regular expression of the whole value of a label.
func (p *parser) compile(m *Matcher) (err error) {
	if m.pattern, err = compilePattern(m.value, p.instructions); err == nil {
		p.instructions -= m.pattern.Instructions
	}
	return err
}

func (p *parser) name() (string, error) {
	if p.rest[0] == '"' {
		return p.quoted()
	}
	end := strings.IndexFunc(p.rest, func(r rune) bool {
		return !strings.ContainsRune("_.-/", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if end < 0 {
		end = len(p.rest)
	}
	name := p.rest[:end]
	if p.rest = p.rest[end:]; name == "" {
		return "", fmt.Errorf("%.20q must be the name of a label", p.rest)
	}
	return name, nil
}

// quoted reads a string in ", ' or `.
func (p *parser) quoted() (string, error) {
	if p.rest == "" || !strings.Contains("\"'`", p.rest[:1]) {
		return "", fmt.Errorf("%.20q must be a value in quotes", p.rest)
	}
	quote := p.rest[0]
	p.rest = p.rest[1:]
	var value strings.Builder
	for p.rest != "" {
		if p.rest[0] == quote {
			p.rest = p.rest[1:]
			return value.String(), nil
		}
		if quote == '`' {
			value.WriteByte(p.rest[0])
			p.rest = p.rest[1:]
			continue
		}
		r, multibyte, rest, err := strconv.UnquoteChar(p.rest, quote)
		if err != nil {
			return "", fmt.Errorf("%.20q is no valid text in quotes", p.rest)
		}
		if p.rest = rest; r < 0x80 || multibyte {
			value.WriteRune(r)
		} else {
			value.WriteByte(byte(r))
		}
	}
	return "", fmt.Errorf("a value must end with %c", quote)
}
