// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root   = "../.."
	module = "github.com/otelcol-profiles/otelcol-profiles"
)

// files returns the paths of the repository's files that keep accepts, below
// the root and with slashes.
func files(t *testing.T, keep func(name string) bool) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") && name != ".github" || entry.Name() == "testdata" || name == "bin" || name == "profiles") {
			return fs.SkipDir
		}
		if entry.Type().IsRegular() && keep(name) {
			found = append(found, name)
		}
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}

func isGo(name string) bool { return path.Ext(name) == ".go" }

func isModule(name string) bool { return path.Base(name) == "go.mod" }

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	require.NoError(t, err)
	return content
}

func isGenerated(content []byte) bool {
	line, _, _ := bytes.Cut(content, []byte("\n"))
	return bytes.HasPrefix(line, []byte("// Code generated ")) && bytes.HasSuffix(line, []byte(" DO NOT EDIT."))
}
