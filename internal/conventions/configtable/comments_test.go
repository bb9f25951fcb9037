// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package configtable

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// comments are the doc comments of fields, by package, type and field.
type comments struct {
	t         *testing.T
	byPackage map[string]map[string]string
	component string // the package of the configuration
}

var (
	statedDefault = regexp.MustCompile(`\bDefaults?: ([^.]*)\.`)
	camelCase     = regexp.MustCompile(`\b[A-Z][a-z]+[A-Z]\w*`)
	// The start of a doc comment after the field's name: of "Window is how long" the
	// description is "How long", of "Window bounds" it is "Bounds".
	verb = regexp.MustCompile(`^(?:is |are |([a-z]+s ))`)
)

// of returns the doc comment of a field as a description, and the default that it states, which
// has its own column. In the description, names of fields become keys.
func (c comments) of(t reflect.Type, field string, keys map[string]string) (text, stated string) {
	if c.byPackage[t.PkgPath()] == nil {
		c.parse(t.PkgPath())
	}
	text = strings.Join(strings.Fields(c.byPackage[t.PkgPath()][t.Name()+"."+field]), " ")
	if m := statedDefault.FindStringSubmatch(text); m != nil {
		stated = m[1]
	}
	text = strings.TrimSpace(statedDefault.ReplaceAllString(text, ""))
	rest, named := strings.CutPrefix(text, field+" ")
	require.True(c.t, text == "" || named && verb.MatchString(rest), "the doc comment of %s.%s is %q: must begin with the name and a verb", t.Name(), field, text)
	if text = verb.ReplaceAllString(rest, "$1"); text != "" {
		text = strings.ToUpper(text[:1]) + text[1:]
	}
	return camelCase.ReplaceAllStringFunc(text, func(name string) string {
		if keys[name] == "" {
			return name
		}
		return "`" + keys[name] + "`"
	}), stated
}

func (c comments) parse(pkg string) {
	c.byPackage[pkg] = map[string]string{}
	names, err := filepath.Glob(filepath.Join(filepath.FromSlash(strings.TrimPrefix(pkg, module)), "*.go"))
	require.NoError(c.t, err)
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(c.t, err)
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if fields, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range fields.Fields.List {
					for _, name := range field.Names {
						c.byPackage[pkg][spec.Name.Name+"."+name.Name] = field.Doc.Text()
					}
				}
			}
			return false
		})
	}
}
