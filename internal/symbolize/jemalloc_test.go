// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolize_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const callers = `
__attribute__((noinline)) int leaf(int x) { volatile int s = 0; for (int i = 0; i < x; i++) s += i; return s; }
__attribute__((noinline)) int work(int x) { return leaf(x) + 1; }
int main(int argc, char** argv) { return work(argc) + 1; }
`

// The profiles that programs make of jemalloc's have the addresses of the file, and one mapping without a place.
func TestMappingsOfTheWholeMemoryHaveTheAddressesOfTheFile(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("gcc is not installed")
	}
	for _, pie := range []string{"-pie", "-no-pie"} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "callers.c"), []byte(callers), 0o600))
		store, _ := newStore(t, func(o *symbolize.Options) { o.Directories = []string{dir} })
		program := filepath.Join(dir, "program"+pie)
		compiler := exec.CommandContext(t.Context(), "gcc", "-O1", "-fPIE", pie, "-Wl,--build-id=sha1", "-o", program, "callers.c")
		compiler.Dir = dir
		out, err := compiler.CombinedOutput()
		require.NoError(t, err, "%s", out)
		f, err := elf.Open(program)
		require.NoError(t, err)
		symbols, err := f.Symbols()
		require.NoError(t, f.Close())
		require.NoError(t, err)
		inside := map[string]uint64{} // the last byte of each function
		for _, s := range symbols {
			inside[s.Name] = s.Value + s.Size - 1
		}
		for name, mapping := range map[string]profile.Mapping{"whole memory": {Limit: 1<<64 - 1}, "zeros": {}} {
			t.Run(pie+" "+name, func(t *testing.T) {
				mapping := mapping
				mapping.ID, mapping.File, mapping.BuildID = 1, "/srv/program", buildIDOf(t, program)
				p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "inuse_space", Unit: "bytes"}}, Mapping: []*profile.Mapping{&mapping}}
				for i, function := range []string{"leaf", "work", "main"} {
					p.Location = append(p.Location, &profile.Location{ID: uint64(i + 1), Mapping: &mapping, Address: inside[function]})
				}
				p.Sample = []*profile.Sample{{Location: p.Location, Value: []int64{1}}}
				pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(profiletest.Pprof(t, p))
				require.NoError(t, err)
				outcomes := symbolize.Profiles(t.Context(), store, pd, symbolize.DemangleShort)
				assert.Equal(t, map[symbolize.Outcome]int{symbolize.Symbolized: 3}, outcomes)
				var names []string
				for frame := range strings.Lines(stacks(pd)[0]) {
					names = append(names, strings.Fields(frame)[0])
				}
				assert.Equal(t, []string{"leaf", "work", "main"}, names)
				profiletest.RequireConforms(t, pd)
			})
		}
	}
}
