// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolize_test

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/goleak"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize/symbols"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const source = `
struct Tree { int depth; __attribute__((noipa)) int leaf(int x) { return x * depth; } };
static inline int twice(Tree& t, int x) { return 2 * t.leaf(x); }
__attribute__((noipa)) int walk(Tree& t, int n) { int sum = 0; for (int i = 0; i < n; i++) sum += twice(t, i); return sum; }
int main(int argc, char** argv) { Tree t{argc}; return walk(t, 1000); }
`

// native is a program of C++ with its debug information in a file of its own.
type native struct {
	dir, program, debug, buildID string
	leaf, walk                   elf.Symbol
}

func compile(t *testing.T) *native {
	t.Helper()
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("g++ is not installed")
	}
	n := &native{dir: t.TempDir()}
	n.program, n.debug = filepath.Join(n.dir, "program"), filepath.Join(n.dir, "program.debug")
	require.NoError(t, os.WriteFile(filepath.Join(n.dir, "program.cc"), []byte(source), 0o600))
	for _, args := range [][]string{
		{"g++", "-g", "-O2", "-Wl,--build-id=sha1", "-o", n.program, "program.cc"},
		{"objcopy", "--only-keep-debug", n.program, n.debug},
	} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = n.dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	f, err := elf.Open(n.program)
	require.NoError(t, err)
	defer f.Close()
	all, err := f.Symbols()
	require.NoError(t, err)
	for _, s := range all {
		switch s.Name {
		case "_ZN4Tree4leafEi":
			n.leaf = s
		case "_Z4walkR4Treei":
			n.walk = s
		}
	}
	require.NotZero(t, n.walk.Value)
	n.buildID = buildIDOf(t, n.program)
	return n
}

func buildIDOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	info, err := symbols.ReadInfo(bytes.NewReader(data))
	require.NoError(t, err)
	return info.BuildID
}

// callSite returns the address after the call of leaf in walk.
func (n *native) callSite(t *testing.T) uint64 {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "objdump", "-d", "--no-show-raw-insn", n.program).Output()
	require.NoError(t, err)
	lines := strings.Split(string(out), "\n")
	for i, line := range lines {
		if strings.Contains(line, "call") && strings.Contains(line, "<_ZN4Tree4leafEi>") {
			address, err := strconv.ParseUint(strings.TrimSpace(strings.Split(lines[i+1], ":")[0]), 16, 64)
			require.NoError(t, err)
			return address
		}
	}
	require.Fail(t, "walk does not call leaf")
	return 0
}

const base = 0x7f00_0000_0000

// payload returns samples of each build ID in leaf, called by walk, and in walk itself at the address after the call.
func (n *native) payload(t *testing.T, buildIDs ...string) pprofile.Profiles {
	t.Helper()
	return n.payloadAt(t, base, buildIDs...)
}

// payloadAt is payload of a process in which the program starts at base.
func (n *native) payloadAt(t *testing.T, base uint64, buildIDs ...string) pprofile.Profiles {
	t.Helper()
	p := expand.Profile{Type: "cpu", Unit: "nanoseconds", Shape: expand.ShapeValues}
	for _, id := range buildIDs {
		mapping := expand.Mapping{Start: base, Limit: base + 0x100000}
		if id != "" {
			mapping.Attributes = []expand.Attribute{{Key: "process.executable.build_id.gnu", Value: id}}
		}
		leaf := &expand.Frame{Address: base + n.leaf.Value, Mapping: mapping}
		walk := &expand.Frame{Address: base + n.callSite(t), Mapping: mapping}
		for _, stack := range [][]*expand.Frame{{leaf, walk}, {walk}} {
			p.Samples = append(p.Samples, &expand.Sample{Stack: stack, Sum: big.NewInt(1)})
		}
	}
	return profiletest.Build(t, p)
}

// stacks returns the frames of the stacks, innermost first.
func stacks(pd pprofile.Profiles) (all []string) {
	locations := lines(pd.Dictionary())
	for _, stack := range pd.Dictionary().StackTable().All() {
		frames := ""
		for _, l := range stack.LocationIndices().All() {
			frames += locations[l]
		}
		all = append(all, frames)
	}
	return all[1:]
}

type events struct {
	sync.Mutex
	errs []error
}

func (e *events) built(_ string, err error) {
	e.Lock()
	defer e.Unlock()
	e.errs = append(e.errs, err)
}

func newStore(t *testing.T, change func(*symbolize.Options)) (*symbolize.Store, *events) {
	t.Helper()
	e := &events{}
	o := symbolize.Options{Cache: t.TempDir(), CacheSize: 1 << 30, MaxFileSize: 1 << 30, MaxMemory: 64 << 20, Built: e.built, Client: &http.Client{Timeout: 10 * time.Second}}
	change(&o)
	s, err := symbolize.NewStore(o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s, e
}

// want: the caller is looked up before its return address, the leaf at its address, in the function that the loop is inlined
// into.
var want = []string{
	"Tree::leaf program.cc:2\ntwice program.cc:3\nwalk program.cc:4\n",
	"walk program.cc:4\n",
}

func requireSymbolized(t *testing.T, pd pprofile.Profiles) {
	t.Helper()
	got := stacks(pd)
	require.Len(t, got, 2)
	assert.Equal(t, want[0], got[0])
	assert.Contains(t, got[1], want[1])
	profiletest.RequireConforms(t, pd)
	d := pd.Dictionary()
	flags := map[string]bool{}
	for _, i := range d.MappingTable().At(1).AttributeIndices().All() {
		a := d.AttributeTable().At(int(i))
		flags[d.StringTable().At(int(a.KeyStrindex()))] = a.Value().Bool()
	}
	assert.Equal(t, map[string]bool{
		"process.executable.build_id.gnu": false, "pprof.mapping.has_functions": true, "pprof.mapping.has_filenames": true,
		"pprof.mapping.has_line_numbers": true, "pprof.mapping.has_inline_frames": true,
	}, flags)
}

// Processes with the program at other addresses are merged first, whichever was first and shortest: there is one of each
// location, and it is in the right function.
func TestMergedProcessesGetTheSameFunctions(t *testing.T) {
	n := compile(t)
	store, _ := newStore(t, func(o *symbolize.Options) { o.Directories = []string{n.dir} })
	options := &merge.Options{}
	for _, starts := range [][]uint64{{base, base + 0x5000}, {base + 0x7000_0000, base, 0x1000}, {0, base}} {
		window := merge.NewWindow(options)
		for i, start := range starts {
			pd := n.payloadAt(t, start, n.buildID)
			m := pd.Dictionary().MappingTable().At(1)
			m.SetMemoryLimit(m.MemoryLimit() - uint64(len(starts)-i)) // it grows
			payload, err := merge.Check(pd, options)
			require.NoError(t, err)
			require.NoError(t, window.Add(payload))
		}
		pd := window.Emit("")
		require.Equal(t, 1+1, pd.Dictionary().MappingTable().Len())
		require.Equal(t, 1+2, pd.Dictionary().LocationTable().Len())
		require.Equal(t, starts[0], pd.Dictionary().MappingTable().At(1).MemoryStart())
		assert.Equal(t, map[symbolize.Outcome]int{symbolize.Symbolized: 2}, symbolize.Profiles(t.Context(), store, pd, symbolize.DemangleShort))
		alone := n.payload(t, n.buildID)
		symbolize.Profiles(t.Context(), store, alone, symbolize.DemangleShort)
		requireSymbolized(t, alone)
		assert.ElementsMatch(t, stacks(alone), stacks(pd))
		for _, s := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().All() {
			assert.Equal(t, []int64{int64(len(starts))}, s.Values().AsRaw())
		}
	}
}

func TestLocationsGetFunctionsOfFilesInDirectories(t *testing.T) {
	n := compile(t)
	byBuildID := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(byBuildID, ".build-id", n.buildID[:2]), 0o700))
	require.NoError(t, os.Link(n.debug, filepath.Join(byBuildID, ".build-id", n.buildID[:2], n.buildID[2:]+".debug")))
	for name, directory := range map[string]string{"any place": n.dir, ".build-id": byBuildID} {
		t.Run(name, func(t *testing.T) {
			store, e := newStore(t, func(o *symbolize.Options) { o.Directories = []string{directory} })
			pd := n.payload(t, n.buildID)
			pd.Dictionary().FunctionTable().RemoveIf(func(pprofile.Function) bool { return true }) // not even a zero value
			outcomes := symbolize.Profiles(t.Context(), store, pd, symbolize.DemangleShort)
			assert.Equal(t, map[symbolize.Outcome]int{symbolize.Symbolized: 2}, outcomes)
			requireSymbolized(t, pd)
			assert.Equal(t, []error{nil}, e.errs)

			again := n.payload(t, n.buildID)
			symbolize.Profiles(t.Context(), store, again, symbolize.DemangleShort)
			assert.Equal(t, stacks(pd), stacks(again))
			assert.Len(t, e.errs, 1, "the table is made once")
			assert.Empty(t, symbolize.Profiles(t.Context(), store, again, symbolize.DemangleShort), "locations with lines stay")
		})
	}
}

// TestPayloadsGetLimitedMemory: a program can say that many calls were inlined at each of its addresses.
func TestPayloadsGetLimitedMemory(t *testing.T) {
	n := compile(t)
	const limit, more = 256 << 10, 10_000
	store, _ := newStore(t, func(o *symbolize.Options) { o.Directories, o.MaxMemory = []string{n.dir}, limit })
	pd := n.payload(t, n.buildID)
	d := pd.Dictionary()
	for range more {
		d.StackTable().AppendEmpty().LocationIndices().Append(int32(d.LocationTable().Len()))
		d.LocationTable().At(1).CopyTo(d.LocationTable().AppendEmpty())
	}
	outcomes := symbolize.Profiles(t.Context(), store, pd, symbolize.DemangleShort)
	lines := 0
	for _, l := range d.LocationTable().All() {
		lines += l.Lines().Len()
	}
	assert.Positive(t, outcomes[symbolize.Failed])
	assert.Equal(t, 2+more, outcomes[symbolize.Symbolized]+outcomes[symbolize.Failed])
	assert.InDelta(t, limit/48, lines, limit/48/5)
}

func TestWhatCannotBeSymbolizedStaysAsItIs(t *testing.T) {
	n := compile(t)
	damaged := t.TempDir()
	data, err := os.ReadFile(n.program)
	require.NoError(t, err)
	copy(data[len(data)/3:], make([]byte, len(data)/2))
	profiletest.WriteAt(t, filepath.Join(damaged, ".build-id", n.buildID[:2], n.buildID[2:]+".debug"), data, time.Now())
	store, _ := newStore(t, func(o *symbolize.Options) { o.Directories = []string{n.dir} })
	broken, e := newStore(t, func(o *symbolize.Options) { o.Directories = []string{damaged} })
	for name, c := range map[string]struct {
		store   *symbolize.Store
		buildID string
		change  func(pprofile.Profiles)
		want    symbolize.Outcome
	}{
		"no build ID":             {store, "", nil, symbolize.NoBuildID},
		"unknown build ID":        {store, "0123456789abcdef", nil, symbolize.NotFound},
		"build ID that is a path": {store, "../../etc/passwd", nil, symbolize.NoBuildID},
		"damaged file":            {broken, n.buildID, nil, symbolize.Failed},
		"offset of a mapping that lies": {store, n.buildID, func(pd pprofile.Profiles) {
			pd.Dictionary().MappingTable().At(1).SetFileOffset(1 << 40)
		}, symbolize.BadMapping},
	} {
		t.Run(name, func(t *testing.T) {
			pd := n.payload(t, c.buildID)
			if c.change != nil {
				c.change(pd)
			}
			outcomes := symbolize.Profiles(t.Context(), c.store, pd, symbolize.DemangleShort)
			assert.Equal(t, map[symbolize.Outcome]int{c.want: 2}, outcomes)
			assert.Equal(t, []string{"", ""}, stacks(pd))
			if c.buildID != "" {
				profiletest.RequireConforms(t, pd)
			}
		})
	}
	require.Len(t, e.errs, 1)
	assert.ErrorContains(t, e.errs[0], n.buildID[2:]+".debug")
}

// serve runs a server until the test ends, and returns its URL.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// TestDebuginfodServersAreAsked: away, 404, another file, half a file, a file that is too large.
func TestDebuginfodServersAreAsked(t *testing.T) {
	n := compile(t)
	debugFile, err := os.ReadFile(n.debug)
	require.NoError(t, err)
	other := bytes.ReplaceAll(debugFile, []byte("GNU\x00"), []byte("GNV\x00"))
	good := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/buildid/"+n.buildID+"/debuginfo" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(debugFile)
	})
	answer := func(data []byte) string {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
	}
	away := httptest.NewServer(nil)
	away.Close()
	for name, c := range map[string]struct{ server, err string }{
		"404":         {serve(t, http.NotFound), ""},
		"away":        {away.URL, "connection refused"},
		"500":         {serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) }), "500 Internal Server Error"},
		"other file":  {answer(other), "its build ID is"},
		"half a file": {answer(debugFile[:len(debugFile)/2]), "debuginfo of 127.0.0.1"},
		"text":        {answer([]byte("<html>")), "is not an ELF file"},
		"too large":   {answer(make([]byte, 3<<20)), "max_file_size"},
	} {
		t.Run(name, func(t *testing.T) {
			store, e := newStore(t, func(o *symbolize.Options) { o.Servers, o.MaxFileSize = []string{c.server}, 2<<20 })
			pd := n.payload(t, n.buildID)
			outcomes := symbolize.Profiles(t.Context(), store, pd, symbolize.DemangleShort)
			require.Len(t, e.errs, 1)
			if c.err == "" {
				assert.Equal(t, map[symbolize.Outcome]int{symbolize.NotFound: 2}, outcomes)
				assert.ErrorIs(t, e.errs[0], symbolize.ErrNotFound)
			} else {
				assert.Equal(t, map[symbolize.Outcome]int{symbolize.Failed: 2}, outcomes)
				assert.ErrorContains(t, e.errs[0], c.err)
			}
			assert.Equal(t, []string{"", ""}, stacks(pd))

			both, _ := newStore(t, func(o *symbolize.Options) { o.Servers, o.MaxFileSize = []string{c.server, good}, 2<<20 })
			symbolize.Profiles(t.Context(), both, pd, symbolize.DemangleShort)
			if name != "half a file" { // its headers are right
				requireSymbolized(t, pd)
			}
		})
	}
}

// TestFilesThatShareDebugInformationNeedBoth: without the file of .gnu_debugaltlink functions are those of the symbol table, until
// that file is there.
func TestFilesThatShareDebugInformationNeedBoth(t *testing.T) {
	n := compile(t)
	if _, err := exec.LookPath("dwz"); err != nil {
		t.Skip("dwz is not installed")
	}
	data, err := os.ReadFile(n.program)
	require.NoError(t, err)
	dir, cache := t.TempDir(), t.TempDir()
	for _, name := range []string{"first", "second"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o700))
	}
	cmd := exec.CommandContext(t.Context(), "dwz", "-m", "../"+filepath.Base(cache)+"/alt", "-M", "alt", "first", "second")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	symbolized := func() (pprofile.Profiles, []error) {
		store, e := newStore(t, func(o *symbolize.Options) { o.Directories, o.Cache = []string{dir}, cache })
		defer store.Close()
		pd := n.payload(t, n.buildID)
		outcomes := symbolize.Profiles(t.Context(), store, pd, symbolize.DemangleShort)
		assert.Equal(t, map[symbolize.Outcome]int{symbolize.Symbolized: 2}, outcomes)
		return pd, e.errs
	}
	alone, errs := symbolized()
	assert.Equal(t, "Tree::leaf .:0\nwalk .:0\n", stacks(alone)[0])
	require.Len(t, errs, 1)
	incomplete, ok := errors.AsType[*symbolize.IncompleteError](errs[0])
	require.True(t, ok)
	require.ErrorContains(t, incomplete, filepath.Join(dir, "first"))

	require.NoError(t, os.Rename(filepath.Join(cache, "alt"), filepath.Join(dir, "alt")))
	both, errs := symbolized()
	requireSymbolized(t, both)
	assert.Equal(t, []error{nil}, errs)

	served := map[string]string{"/buildid/" + n.buildID + "/debuginfo": "first", "/buildid/" + buildIDOf(t, filepath.Join(dir, "alt")) + "/debuginfo": "alt"}
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if assert.Contains(t, served, r.URL.Path) {
			http.ServeFile(w, r, filepath.Join(dir, served[r.URL.Path]))
		}
	})
	store, _ := newStore(t, func(o *symbolize.Options) { o.Servers = []string{server} })
	downloaded := n.payload(t, n.buildID)
	symbolize.Profiles(t.Context(), store, downloaded, symbolize.DemangleShort)
	requireSymbolized(t, downloaded)
}

func TestPayloadsDoNotWaitForSlowServers(t *testing.T) {
	n := compile(t)
	debugFile, err := os.ReadFile(n.debug)
	require.NoError(t, err)
	asked, answer := make(chan bool, 10), make(chan bool)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- true
		select {
		case <-answer:
			_, _ = w.Write(debugFile)
		case <-r.Context().Done():
		}
	})
	store, _ := newStore(t, func(o *symbolize.Options) { o.Servers = []string{server} })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	pd := n.payload(t, n.buildID)
	assert.Equal(t, map[symbolize.Outcome]int{symbolize.Pending: 2}, symbolize.Profiles(ctx, store, pd, symbolize.DemangleShort))
	assert.Equal(t, []string{"", ""}, stacks(pd))
	close(answer)
	symbolize.Profiles(t.Context(), store, pd, symbolize.DemangleShort)
	requireSymbolized(t, pd)
}

// TestFilesOfDirectoriesDoNotWaitForServers: a server that hangs holds up the files that it is asked for only.
func TestFilesOfDirectoriesDoNotWaitForServers(t *testing.T) {
	n := compile(t)
	stuck := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	store, e := newStore(t, func(o *symbolize.Options) { o.Directories, o.Servers = []string{n.dir}, []string{stuck} })
	pd := n.payload(t, n.buildID, "0000000000000000")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, map[symbolize.Outcome]int{symbolize.Pending: 4}, symbolize.Profiles(ctx, store, pd, symbolize.DemangleShort))
	require.Eventually(t, func() bool {
		return symbolize.Profiles(ctx, store, pd, symbolize.DemangleShort)[symbolize.Symbolized] == 2
	}, 30*time.Second, 10*time.Millisecond)
	assert.Equal(t, map[symbolize.Outcome]int{symbolize.Pending: 2}, symbolize.Profiles(ctx, store, pd, symbolize.DemangleShort))
	store.Close() // ends the search
	assert.Equal(t, []error{nil}, e.errs)
}

// TestLocationsOfATableThatCannotBeReadCountOnce: a name of the table ends before it starts.
func TestLocationsOfATableThatCannotBeReadCountOnce(t *testing.T) {
	n := compile(t)
	cache := t.TempDir()
	store, _ := newStore(t, func(o *symbolize.Options) { o.Directories, o.Cache = []string{n.dir}, cache })
	symbolize.Profiles(t.Context(), store, n.payload(t, n.buildID), symbolize.DemangleShort)
	path := filepath.Join(cache, n.buildID+".symbols")
	table, err := os.ReadFile(path)
	require.NoError(t, err)
	part := func(i int) []byte { // see format.go of package symbols
		header := table[8+16*i:]
		start, size := binary.LittleEndian.Uint64(header), binary.LittleEndian.Uint64(header[8:])
		return table[start : start+size]
	}
	ends, names := part(6), part(7)
	name := bytes.Index(names, []byte("_ZN4Tree4leafEi")) // of the second location
	require.Positive(t, name)
	require.Less(t, n.walk.Value, n.leaf.Value)
	for ; binary.LittleEndian.Uint32(ends) <= uint32(name); ends = ends[4:] {
	}
	binary.LittleEndian.PutUint32(ends, 0)
	require.NoError(t, os.WriteFile(path, table, 0o600))
	outcomes := symbolize.Profiles(t.Context(), store, n.payload(t, n.buildID), symbolize.DemangleShort)
	assert.Equal(t, map[symbolize.Outcome]int{symbolize.Symbolized: 1, symbolize.Failed: 1}, outcomes)
	require.NoFileExists(t, path)
	pd := n.payload(t, n.buildID)
	symbolize.Profiles(t.Context(), store, pd, symbolize.DemangleShort)
	requireSymbolized(t, pd)
}

func TestCacheIsLimitedAndDamagedTablesAreMadeAgain(t *testing.T) {
	n := compile(t)
	cache := t.TempDir()
	open := func(size int64) *symbolize.Store {
		store, _ := newStore(t, func(o *symbolize.Options) { o.Directories, o.Cache, o.CacheSize = []string{n.dir}, cache, size })
		return store
	}
	first := open(1 << 30)
	symbolize.Profiles(t.Context(), first, n.payload(t, n.buildID), symbolize.DemangleShort)
	first.Close()
	table := filepath.Join(cache, n.buildID+".symbols")
	require.FileExists(t, table)

	require.NoError(t, os.WriteFile(table, []byte("not a table"), 0o600))
	pd := n.payload(t, n.buildID)
	symbolize.Profiles(t.Context(), open(1<<30), pd, symbolize.DemangleShort)
	requireSymbolized(t, pd)

	old := filepath.Join(cache, "aaaaaaaa.symbols")
	profiletest.WriteAt(t, old, make([]byte, 1<<20), time.Now().Add(-time.Hour))
	open(1 << 19)
	require.FileExists(t, table)
	require.NoFileExists(t, old)
}

// TestPanicsEndNoGoroutine_A11: the file fails, is searched for again later, and others are found.
func TestPanicsEndNoGoroutine_A11(t *testing.T) {
	store, e := newStore(t, func(o *symbolize.Options) {
		o.Servers = []string{"http://debuginfod.example"}
		o.Client = &http.Client{Transport: panicking{}}
	})
	n := compile(t)
	for _, id := range []string{"00112233445566778899", "99887766554433221100"} {
		outcomes := symbolize.Profiles(t.Context(), store, n.payload(t, id), symbolize.DemangleShort)
		assert.Equal(t, map[symbolize.Outcome]int{symbolize.Failed: 2}, outcomes)
	}
	require.Len(t, e.errs, 2)
	var caught *panics.Error
	require.ErrorAs(t, e.errs[1], &caught)
	assert.Contains(t, string(caught.Stack), "panicking.RoundTrip")
}

type panicking struct{}

func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("out of the blue") }
