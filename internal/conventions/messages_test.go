// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// loud are the methods of a logger whose messages somebody has to understand at night.
var loud = []string{"Warn", "Error", "DPanic", "Panic", "Fatal"}

// messages returns what the packages log at warning level and above. Calls through a
// variable that was given such a method count. A message must be a literal.
func messages(t *testing.T, dir string) (found []string) {
	t.Helper()
	for _, file := range sources(t, dir) {
		variables := map[string]bool{}
		ast.Inspect(file, func(node ast.Node) bool {
			assign, ok := node.(*ast.AssignStmt)
			if !ok {
				return true
			}
			for i, value := range assign.Rhs {
				if name, ok := assign.Lhs[min(i, len(assign.Lhs)-1)].(*ast.Ident); ok && isLoud(value) {
					variables[name.Name] = true
				}
			}
			return true
		})
		ast.Inspect(file, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			if name, ok := call.Fun.(*ast.Ident); !isLoud(call.Fun) && (!ok || !variables[name.Name]) {
				return true
			}
			text, ok := call.Args[0].(*ast.BasicLit)
			if !ok || text.Kind != token.STRING {
				t.Errorf("%s: a message that is no literal cannot be looked up", dir)
				return true
			}
			message, err := strconv.Unquote(text.Value)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, message)
			return true
		})
	}
	return found
}

// isLoud says whether an expression is a method of a logger for warnings or errors.
func isLoud(expression ast.Expr) bool {
	method, ok := expression.(*ast.SelectorExpr)
	if !ok || !slices.Contains(loud, method.Sel.Name) {
		return false
	}
	switch logger := method.X.(type) {
	case *ast.Ident:
		return strings.HasSuffix(strings.ToLower(logger.Name), "logger")
	case *ast.SelectorExpr:
		return strings.HasSuffix(strings.ToLower(logger.Sel.Name), "logger")
	}
	return false
}

// TestOperatingPageHasEachMessage: what a component warns of is in a row of
// docs/operating.md, and no row is about what nobody says.
func TestOperatingPageHasEachMessage(t *testing.T) {
	page := string(read(t, "docs/operating.md"))
	_, section, _ := strings.Cut(page, "\n## Messages\n")
	section, _, ok := strings.Cut(section, "\n### The collector's own")
	if !ok {
		t.Fatal("docs/operating.md has no section of messages")
	}
	rows := map[string]bool{} // first cells, and whether somebody says one of their messages
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			cell, _, _ := strings.Cut(line[2:], " |")
			rows[cell] = false
		}
	}
	for _, dir := range components {
		said := messages(t, dir)
		if len(said) == 0 {
			t.Errorf("%s never warns?", dir)
		}
		for _, message := range said {
			told := false
			for cell := range rows {
				if strings.Contains(cell, "`"+message+"`") {
					rows[cell], told = true, true
				}
			}
			if !told {
				t.Errorf("docs/operating.md does not have the message of %s: %s", dir, message)
			}
		}
	}
	for cell, said := range rows {
		if !said {
			t.Errorf("nobody says %s any more", cell)
		}
	}
}
