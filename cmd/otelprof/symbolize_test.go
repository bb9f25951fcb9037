// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"strings"
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
	symbolized = savePprof(t, p)
	if !keepID {
		p.Mapping[0].BuildID = ""
	}
	p.Function = nil
	for _, l := range p.Location {
		l.Line = nil
	}
	return symbolized, savePprof(t, p)
}

// programIn copies this program into a directory as path.
func programIn(t *testing.T, directory, path string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	data, err := os.ReadFile(self)
	require.NoError(t, err)
	path = filepath.Join(directory, path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

func TestSymbolizeGivesNativeFramesTheirFunctions(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
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
	left, err := filepath.Glob(filepath.Join(temporary, "otelprof-symbols-*"))
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

// TestSymbolizeProfilesOfGperftoolsAndPerf symbolizes profiles of one program, testdata/native/program.cc, of which root has the
// debug information. Those of gperftools 2.10 have paths of files only. perf.pb.gz is a recording of perf 6.1 as perf_to_profile
// writes it, with the byte before a return address. Frames equal those of google-pprof and perf script.
func TestSymbolizeProfilesOfGperftoolsAndPerf(t *testing.T) {
	dir := filepath.Join("testdata", "native")
	stacks := func(file string) map[string]string {
		found := map[string]string{}
		for line := range strings.Lines(succeed(t, "convert", "--format", "folded", "--symbolize", filepath.Join(dir, "root"), filepath.Join(dir, file))) {
			stack, value, _ := strings.Cut(strings.TrimSpace(addressInOthers.ReplaceAllString(line, "[$1]")), " ")
			found[stack] = value
		}
		return found
	}
	assert.Equal(t, map[string]string{
		"_start;[libc.so.6];[libc.so.6];main;walk;twice;Tree::leaf": "532000000",
		"_start;[libc.so.6];[libc.so.6];main;walk":                  "4000000",
	}, stacks("gperftools.cpu"))
	assert.Equal(t, map[string]string{"_start;[libc.so.6];[libc.so.6];main;keep": "1048576"}, stacks("gperftools.heap"))
	assert.Equal(t, map[string]string{
		"[libc.so.6];main;walk;twice;Tree::leaf": "496000000",
		"[libc.so.6];main;walk":                  "4000000",
		"[libc.so.6];main;Tree::leaf":            "4000000", // before leaf set its frame pointer
		"[libc.so.6];main;walk;twice;Tree::leaf;[[kernel.kallsyms]];[[kernel.kallsyms]]": "4000000",
		"[libc.so.6]": "4000000",
	}, stacks("perf.pb.gz"))

	data := succeed(t, "convert", "--format", "pprof", "--symbolize", filepath.Join(dir, "root"), filepath.Join(dir, "gperftools.cpu"))
	lines := map[int64]int64{}
	for _, s := range parse(t, []byte(data)).Sample {
		lines[s.Location[0].Line[0].Line] += s.Value[0]
	}
	assert.Equal(t, map[int64]int64{7: 130, 8: 1, 9: 2, 16: 1}, lines)
}

var addressInOthers = regexp.MustCompile(`\[(\S+)\] 0x[0-9a-f]+`)
