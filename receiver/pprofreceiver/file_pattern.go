// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// parameterProfileType is the name in braces that sets profile.type.
const parameterProfileType = "profile_type"

// pathPattern is a pattern of files: a directory, a glob below it, and the names of
// the parts of a path that tell something.
type pathPattern struct {
	base  string // absolute
	glob  string // relative to base, with slashes
	match *regexp.Regexp
	names []string // of the groups of match
}

// attributeName is what a name in braces looks like: alternatives have a comma.
var attributeName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.\-]*$`)

// parsePathPattern reads a pattern. Errors begin with a verb: what is wrong with it.
func parsePathPattern(pattern string) (*pathPattern, error) {
	if pattern == "" {
		return nil, errors.New("is empty, want a pattern of paths as in /var/lib/profiles/**/*.pb.gz")
	}
	absolute, err := filepath.Abs(filepath.FromSlash(pattern))
	if err != nil {
		return nil, fmt.Errorf("has no absolute path: %w", err)
	}
	base, relative := doublestar.SplitPattern(filepath.ToSlash(absolute))
	p := &pathPattern{base: filepath.FromSlash(base)}
	var glob strings.Builder
	expression := strings.Builder{}
	expression.WriteString(`\A`)
	depth := 0 // of alternatives
	for i := 0; i < len(relative); {
		rest := relative[i:]
		switch c := rest[0]; {
		case c == '\\' && len(rest) > 1:
			glob.WriteString(rest[:2])
			expression.WriteString(regexp.QuoteMeta(rest[1:2]))
			i += 2
			continue
		case strings.HasPrefix(rest, "**/") && (i == 0 || relative[i-1] == '/'):
			glob.WriteString("**/")
			expression.WriteString(`(?:[^/]+/)*`)
			i += 3
			continue
		case rest == "**" && (i == 0 || relative[i-1] == '/'):
			expression.WriteString(`.*`)
			glob.WriteString("**")
			i += 2
			continue
		case c == '*':
			expression.WriteString(`[^/]*`)
		case c == '?':
			expression.WriteString(`[^/]`)
		case c == '[':
			end := strings.IndexByte(rest, ']')
			if end < 2 {
				return nil, errors.New("has a [ without a class and its ]")
			}
			class := rest[1:end]
			if class[0] == '!' {
				class = "^" + class[1:]
			}
			expression.WriteString("[" + class + "]")
			glob.WriteString(rest[:end+1])
			i += end + 1
			continue
		case c == '{':
			end := strings.IndexByte(rest, '}')
			if end < 0 {
				return nil, errors.New("has a { without its }")
			}
			if name := rest[1:end]; attributeName.MatchString(name) {
				if depth > 0 {
					return nil, fmt.Errorf("has the name %q inside alternatives", name)
				}
				if err := p.addName(name); err != nil {
					return nil, err
				}
				glob.WriteByte('*')
				expression.WriteString(`([^/]+)`)
				i += end + 1
				continue
			}
			depth++
			expression.WriteString(`(?:`)
		case c == '}' && depth > 0:
			depth--
			expression.WriteByte(')')
		case c == ',' && depth > 0:
			expression.WriteByte('|')
		default:
			expression.WriteString(regexp.QuoteMeta(rest[:1]))
		}
		glob.WriteByte(rest[0])
		i++
	}
	expression.WriteString(`\z`)
	p.glob = glob.String()
	if !doublestar.ValidatePattern(p.glob) || p.glob == "" {
		return nil, errors.New("is not a pattern, want one as in /var/lib/profiles/**/*.pb.gz")
	}
	if isTemporary(p.glob) {
		return nil, fmt.Errorf("finds only files that are left out as unfinished: names that end in one of %q", temporarySuffixes)
	}
	if len(p.names) > 0 {
		if p.match, err = regexp.Compile(`(?s)` + expression.String()); err != nil {
			return nil, fmt.Errorf("is not a pattern: %w", err)
		}
	}
	return p, nil
}

func (p *pathPattern) addName(name string) error {
	if slices.Contains(p.names, name) {
		return fmt.Errorf("has the name %q twice", name)
	}
	if name != parameterProfileType && !strings.Contains(name, ".") {
		return fmt.Errorf("has the name %q: want %s, or a resource attribute, which has a dot in its name as in service.name", name, parameterProfileType)
	}
	p.names = append(p.names, name)
	return nil
}

// parts returns what the names stand for in a path below base, or false when it
// does not match.
func (p *pathPattern) parts(relative string) (attributes map[string]string, kind string, matches bool) {
	if p.match == nil {
		return nil, "", true
	}
	found := p.match.FindStringSubmatch(relative)
	if found == nil {
		return nil, "", false
	}
	attributes = make(map[string]string, len(p.names))
	for i, name := range p.names {
		value := dictionary.ValidUTF8(found[i+1])
		if name == parameterProfileType {
			kind = value
			continue
		}
		attributes[name] = value
	}
	return attributes, kind, true
}
