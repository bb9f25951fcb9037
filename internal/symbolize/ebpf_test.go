// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolize_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize"
)

// TestProfilesOfTheEBPFProfilerGetFunctions symbolizes what the OpenTelemetry eBPF profiler v0.0.202633 recorded of a stripped
// C++ program (g++ 12 -O2 -g), whose debug information objcopy --only-keep-debug kept. The frames are those that
// llvm-symbolizer 14 --inlines gives for the leaves, and for the byte before the return addresses of calls.
func TestProfilesOfTheEBPFProfilerGetFunctions(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "ebpf.otlp.json"))
	require.NoError(t, err)
	pd := profiletest.UnmarshalJSON(t, data)
	store, e := newStore(t, func(o *symbolize.Options) { o.Directories = []string{"testdata"} })
	outcomes := symbolize.Profiles(t.Context(), store, pd, symbolize.DemangleShort)
	assert.Equal(t, map[symbolize.Outcome]int{symbolize.Symbolized: ebpfNative, symbolize.NotFound: 2}, outcomes, "those of libc have no debug file")
	slices.SortFunc(e.errs, func(a, b error) int { return len(fmt.Sprint(a)) - len(fmt.Sprint(b)) })
	require.Len(t, e.errs, 2)
	require.NoError(t, e.errs[0])
	require.ErrorIs(t, e.errs[1], symbolize.ErrNotFound)
	got := map[string]string{}
	locations := lines(pd.Dictionary())
	for _, stack := range pd.Dictionary().StackTable().All() {
		for i, location := range stack.LocationIndices().All() {
			if l := pd.Dictionary().LocationTable().At(int(location)); l.MappingIndex() == 1 {
				got[fmt.Sprintf("%#x is a leaf: %v", l.Address(), i == 0)] = locations[location]
			}
		}
	}
	assert.Equal(t, ebpfFrames, got)
}

// lines returns the frames of each location.
func lines(d pprofile.ProfilesDictionary) (all []string) {
	for _, l := range d.LocationTable().All() {
		frames := ""
		for _, line := range l.Lines().All() {
			f := d.FunctionTable().At(int(line.FunctionIndex()))
			frames += fmt.Sprintf("%s %s:%d\n", d.StringTable().At(int(f.NameStrindex())), filepath.Base(d.StringTable().At(int(f.FilenameStrindex()))), line.Line())
		}
		all = append(all, frames)
	}
	return all
}

const ebpfNative = 10 // locations of the program

var ebpfFrames = map[string]string{
	"0x10b0 is a leaf: false": "_start .:0\n",
	"0x106c is a leaf: false": "main program.cc:20\n",
	"0x11ae is a leaf: false": "twice program.cc:9\nwalk program.cc:14\n",
	"0x11f0 is a leaf: true":  "Tree::leaf program.cc:4\n",
	"0x1206 is a leaf: true":  "Tree::leaf program.cc:4\n",
	"0x1206 is a leaf: false": "Tree::leaf program.cc:4\n",
	"0x1208 is a leaf: true":  "Tree::leaf program.cc:4\n",
	"0x11b5 is a leaf: true":  "twice program.cc:9\nwalk program.cc:14\n",
	"0x11bb is a leaf: false": "twice program.cc:10\nwalk program.cc:14\n",
	"0x11bc is a leaf: true":  "twice program.cc:10\nwalk program.cc:14\n",
	"0x11c1 is a leaf: true":  "walk program.cc:14\n",
}
