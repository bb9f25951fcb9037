// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolize_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const goSource = `package main

import (
	"os"
	"runtime/pprof"
	"sort"
	"strconv"
	"time"
)

func sorted(n int) int {
	var words []string
	for i := range n {
		words = append(words, strconv.Itoa(i*7919))
	}
	sort.Strings(words)
	return len(words[0])
}

func main() {
	if err := pprof.StartCPUProfile(os.Stdout); err != nil {
		panic(err)
	}
	for start := time.Now(); time.Since(start) < 500*time.Millisecond; {
		sorted(1000)
	}
	pprof.StopCPUProfile()
}
`

// lines returns the frames of each location.
func lines(d pprofile.ProfilesDictionary) (all []string) {
	for _, l := range d.LocationTable().All() {
		frames := ""
		for _, line := range l.Lines().All() {
			f := d.FunctionTable().At(int(line.FunctionIndex()))
			frames += fmt.Sprintf("%s %s:%d\n", d.StringTable().At(int(f.NameStrindex())), d.StringTable().At(int(f.FilenameStrindex())), line.Line())
		}
		all = append(all, frames)
	}
	return all
}

// TestFramesEqualThoseOfGo profiles a Go program, which symbolizes its own profile, removes all functions, and symbolizes it
// again.
func TestFramesEqualThoseOfGo(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(goSource), 0o600))
	build := exec.CommandContext(t.Context(), "go", "build", "-o", "program", "main.go")
	build.Dir = dir
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	program := exec.CommandContext(t.Context(), filepath.Join(dir, "program"))
	program.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1") // else some callers were interrupted, and did not call
	profile, err := program.Output()
	require.NoError(t, err)
	unmarshaler := pproftranslator.Unmarshaler{}
	pd, err := unmarshaler.UnmarshalProfiles(profile)
	require.NoError(t, err)

	want := lines(pd.Dictionary())
	native := 0
	for _, l := range pd.Dictionary().LocationTable().All() {
		if l.Lines().Len() > 0 {
			native++
		}
		l.Lines().RemoveIf(func(pprofile.Line) bool { return true })
	}
	require.Greater(t, native, 10)
	store, _ := newStore(t, func(o *symbolize.Options) { o.Directories = []string{dir} })
	outcomes := symbolize.Profiles(t.Context(), store, pd, symbolize.DemangleShort)
	assert.Equal(t, map[symbolize.Outcome]int{symbolize.Symbolized: native}, outcomes)
	got := lines(pd.Dictionary())
	leaves := map[int32]bool{} // Go looks up a leaf that a signal interrupted one lower, too
	for _, stack := range pd.Dictionary().StackTable().All() {
		if stack.LocationIndices().Len() > 0 {
			leaves[stack.LocationIndices().At(0)] = true
		}
	}
	callers, otherLines := 0, 0
	for i := range want {
		if leaves[int32(i)] {
			continue
		}
		callers++
		// Go has a location of its own for the function around some inlined calls, at an address of such a call.
		expected := strings.ReplaceAll(want[i], " ./", " ")
		if !strings.HasSuffix(got[i], expected) {
			otherLines++
			function, _, _ := strings.Cut(expected, " ")
			assert.Contains(t, got[i], function+" ", "%#x", pd.Dictionary().LocationTable().At(i).Address())
		}
	}
	assert.LessOrEqual(t, otherLines, 2+callers/10, "of %d callers", callers)
	require.Greater(t, callers, 3)
}
