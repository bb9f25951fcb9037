// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// components are the packages that a collector is built from.
var components = []string{"receiver/pprofreceiver", "receiver/profilesfilereceiver", "processor/profilesdedupprocessor", "processor/symbolizeprocessor", "exporter/profilesfileexporter", "exporter/pprofexporter", "extension/otlplimitextension", "extension/profilesviewextension", "connector/splunkprofilingconnector"}

// sources parses the Go files of a package that are not tests.
func sources(t *testing.T, dir string) []*ast.File {
	t.Helper()
	var parsed []*ast.File
	for _, name := range files(t, isGo) {
		if path.Dir(name) != dir || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.SkipObjectResolution)
		require.NoError(t, err)
		parsed = append(parsed, file)
	}
	require.NotEmpty(t, parsed, dir)
	return parsed
}

// TestComponentsExportOnlyTheirFactory: and Config, with the types that it is made of.
func TestComponentsExportOnlyTheirFactory(t *testing.T) {
	for _, dir := range components {
		for _, file := range sources(t, dir) {
			for _, decl := range file.Decls {
				for _, name := range declared(decl) {
					assert.True(t, !ast.IsExported(name) || name == "NewFactory" || strings.HasSuffix(name, "Config"), "%s exports %s", dir, name)
				}
			}
		}
	}
}

// declared returns the names that a declaration gives to a package.
func declared(decl ast.Decl) (names []string) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil {
			names = append(names, decl.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}
