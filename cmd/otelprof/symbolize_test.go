// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/pprof"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// withoutSymbols writes a goroutine profile of this process twice: with functions, and with addresses only, as gperftools
// and perf write profiles. The mapping of the second names file, and has the build ID of this program if keepID is set.
func withoutSymbols(t *testing.T, file string, keepID bool) (symbolized, native string) {
	t.Helper()
	var data bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&data, 0))
	p, err := profile.Parse(&data)
	require.NoError(t, err)
	require.NotEmpty(t, p.Mapping[0].BuildID, "Go's linker writes a GNU build ID")
	p.Mapping[0].File = file
	dir := t.TempDir()
	symbolized, native = filepath.Join(dir, "symbolized.pb"), filepath.Join(dir, "native.pb")
	write := func(path string) {
		var data bytes.Buffer
		require.NoError(t, p.Write(&data))
		require.NoError(t, os.WriteFile(path, data.Bytes(), 0o600))
	}
	write(symbolized)
	if !keepID {
		p.Mapping[0].BuildID = ""
	}
	p.Function = nil
	for _, l := range p.Location {
		l.Line = nil
	}
	write(native)
	return symbolized, native
}

// programIn copies this program into a directory as path.
func programIn(t *testing.T, directory, path string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(directory, path)), 0o700))
	data, err := os.ReadFile(self)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(directory, path), data, 0o600))
}

func TestSymbolizeGivesNativeFramesTheirFunctions(t *testing.T) {
	root := t.TempDir()
	programIn(t, root, "/app/server")
	for name, keepID := range map[string]bool{"by build ID": true, "by path": false} {
		t.Run(name, func(t *testing.T) {
			symbolized, native := withoutSymbols(t, "/app/server", keepID)
			want := succeed(t, "convert", "--format", "folded", symbolized)
			require.Contains(t, want, "cmd/otelprof.withoutSymbols")
			assert.Equal(t, want, succeed(t, "convert", "--format", "folded", "--symbolize", root, native))
			assert.NotContains(t, succeed(t, "top", native), "withoutSymbols")
			code, top, notes := otelprof(t, "top", "--symbolize", root, native)
			assert.Equal(t, exitOK, code)
			assert.Contains(t, top, "cmd/otelprof.withoutSymbols")
			assert.Regexp(t, `symbolized (\d+) of (\d+) locations without lines`, notes)
		})
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "otelprof-symbols-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestSymbolizeSaysWhatHasNoNames(t *testing.T) {
	_, native := withoutSymbols(t, "/app/server", false)
	code, _, notes := otelprof(t, "top", "--symbolize", t.TempDir(), native)
	assert.Equal(t, exitOK, code)
	assert.Contains(t, notes, "symbolized 0 of ")
	assert.Contains(t, notes, "have neither a build ID nor a file")
	code, _, notes = otelprof(t, "top", "--symbolize", native, native)
	assert.Equal(t, exitWrong, code)
	assert.Contains(t, notes, "must be a directory with debug files")
}
