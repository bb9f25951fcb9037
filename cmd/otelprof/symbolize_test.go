// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSymbolizeProfilesOfGperftoolsAndPerf symbolizes profiles of one program, testdata/native/program.cc, of which root has the
// debug information. Those of gperftools 2.10 have paths of files only. perf.pb.gz is a recording of perf 6.1 as perf_to_profile
// writes it, with the byte before a return address. Frames equal those of google-pprof and perf script.
func TestSymbolizeProfilesOfGperftoolsAndPerf(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	dir := filepath.Join("testdata", "native")
	root, native := filepath.Join(dir, "root"), filepath.Join(dir, "gperftools.cpu")
	stacks := func(file string) map[string]string {
		found := map[string]string{}
		for line := range strings.Lines(succeed(t, "convert", "--format", "folded", "--symbolize", root, filepath.Join(dir, file))) {
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

	data := succeed(t, "convert", "--format", "pprof", "--symbolize", root, native)
	lines := map[int64]int64{}
	for _, s := range parse(t, []byte(data)).Sample {
		lines[s.Location[0].Line[0].Line] += s.Value[0]
	}
	assert.Equal(t, map[int64]int64{7: 130, 8: 1, 9: 2, 16: 1}, lines)

	for _, test := range []struct {
		directory string
		code      int
		notes     string
	}{
		{root, exitOK, `symbolized [1-9]\d* of \d+ locations without lines`}, {t.TempDir(), exitOK, `symbolized 0 of \d+ .*; \d+ have neither a build ID nor a file`},
		{native, exitWrong, "must be a directory with debug files"},
	} {
		code, _, notes := otelprof(t, "top", "--symbolize", test.directory, native)
		assert.Equal(t, test.code, code)
		assert.Regexp(t, test.notes, notes)
	}
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	assert.Empty(t, left)
}

var addressInOthers = regexp.MustCompile(`\[(\S+)\] 0x[0-9a-f]+`)
