// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols_test

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"debug/gosym"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize/symbols"
)

// run runs a tool in dir, and skips the test if the tool is not installed.
func run(tb testing.TB, dir, tool string, args ...string) {
	tb.Helper()
	if _, err := exec.LookPath(tool); err != nil {
		tb.Skipf("%s is not installed", tool)
	}
	cmd := exec.CommandContext(tb.Context(), tool, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(tb, err, "%s %v: %s", tool, args, out)
}

// source returns the absolute path of a file of testdata.
func source(tb testing.TB, name string) string {
	tb.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	require.NoError(tb, err)
	return path
}

func compile(tb testing.TB, compiler string, args ...string) (program string) {
	tb.Helper()
	dir := tb.TempDir()
	switch compiler {
	case "rustc":
		args = append(args, source(tb, "program.rs"))
	case "go":
		text, err := os.ReadFile(source(tb, "program.go.txt"))
		require.NoError(tb, err)
		require.NoError(tb, os.WriteFile(filepath.Join(dir, "main.go"), text, 0o600))
		args = append(append([]string{"build"}, args...), "-o", "program", "main.go")
	default:
		args = append(args, source(tb, "program.cc"))
	}
	if compiler != "go" {
		args = append(args, "-g", "-o", "program")
	}
	run(tb, dir, compiler, args...)
	return filepath.Join(dir, "program")
}

// build makes the table of the files with code, debug information and what dwz shares, of which each may be "" or left out.
func build(tb testing.TB, paths ...string) (*symbols.Table, error) {
	tb.Helper()
	var files [3]io.ReaderAt
	for i, path := range paths {
		if path != "" {
			files[i] = openFile(tb, path)
		}
	}
	return buildFrom(tb, symbols.Files{Program: files[0], Debug: files[1], Alt: files[2]})
}

func buildFrom(tb testing.TB, files symbols.Files) (*symbols.Table, error) {
	tb.Helper()
	path, err := write(tb, files)
	if err != nil {
		return nil, err
	}
	require.NoError(tb, symbols.Check(path))
	table, err := symbols.Open(path)
	if err == nil {
		tb.Cleanup(table.Close)
	}
	return table, err
}

// write writes the table of files.
func write(tb testing.TB, files symbols.Files) (path string, err error) {
	tb.Helper()
	out, err := os.Create(filepath.Join(tb.TempDir(), "table"))
	require.NoError(tb, err)
	defer out.Close()
	o := symbols.Options{Directory: tb.TempDir(), MaxMemory: 64 << 20, MaxFileSize: 1 << 30}
	return out.Name(), symbols.Build(tb.Context(), files, o, out)
}

// openFile opens a file until the test ends.
func openFile(tb testing.TB, path string) *os.File {
	tb.Helper()
	f, err := os.Open(path)
	require.NoError(tb, err)
	tb.Cleanup(func() { f.Close() })
	return f
}

func readInfo(t *testing.T, path string) symbols.Info {
	t.Helper()
	info, err := symbols.ReadInfo(openFile(t, path))
	require.NoError(t, err)
	return info
}

// oracle returns the frames that llvm-symbolizer prints for addresses of a program.
func oracle(t *testing.T, program string, addresses []uint64) [][]symbols.Frame {
	t.Helper()
	tool, err := exec.LookPath("llvm-symbolizer")
	if err != nil {
		t.Skip("llvm-symbolizer is not installed")
	}
	var in bytes.Buffer
	for _, a := range addresses {
		fmt.Fprintf(&in, "%#x\n", a)
	}
	cmd := exec.CommandContext(t.Context(), tool, "--obj="+program, "--inlines", "--no-demangle", "--output-style=JSON")
	cmd.Stdin = &in
	out, err := cmd.Output()
	require.NoError(t, err)
	decoder := json.NewDecoder(bufio.NewReader(bytes.NewReader(out)))
	var all [][]symbols.Frame
	for range addresses {
		var answer struct {
			Symbol []struct {
				FunctionName, FileName string
				Line                   int64
			}
		}
		require.NoError(t, decoder.Decode(&answer))
		var frames []symbols.Frame
		for _, s := range answer.Symbol {
			f := symbols.Frame{Function: s.FunctionName, File: s.FileName, Line: s.Line}
			if f.File != "" {
				f.File = filepath.Clean(f.File)
			}
			if !filepath.IsAbs(f.File) && f.Line == 0 {
				f.File = "" // the name of the unit in .symtab, for code without debug information
			}
			if f != (symbols.Frame{}) {
				frames = append(frames, f)
			}
		}
		all = append(all, frames)
	}
	return all
}

// addressesOf returns every step-th address of the functions of a program.
func addressesOf(t *testing.T, program string, step uint64) (addresses []uint64) {
	t.Helper()
	f, err := elf.Open(program)
	require.NoError(t, err)
	defer f.Close()
	all, err := f.Symbols()
	require.NoError(t, err)
	for _, s := range all {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF {
			for at := s.Value; at < s.Value+s.Size; at += step {
				addresses = append(addresses, at)
			}
		}
	}
	require.NotEmpty(t, addresses)
	return addresses
}

// requireFrames requires that tables give the frames of the program as llvm-symbolizer does.
func requireFrames(t *testing.T, program string, step uint64, tables ...*symbols.Table) {
	t.Helper()
	addresses := addressesOf(t, program, step)
	for i, want := range oracle(t, program, addresses) {
		for _, table := range tables {
			got, err := table.Frames(nil, addresses[i])
			require.NoError(t, err)
			for j, f := range got { // llvm-symbolizer has files of assembler without their directory
				if f.Line == 0 && j < len(want) && want[j].File == "" {
					got[j].File = ""
				}
			}
			require.Equal(t, want, got, "%#x", addresses[i])
		}
	}
}

func TestFramesEqualThoseOfLLVMSymbolizer(t *testing.T) {
	for name, c := range map[string]struct {
		compiler string
		args     []string
		step     uint64
	}{
		"g++ O0 DWARF 4":      {"g++", []string{"-O0", "-gdwarf-4"}, 1},
		"g++ O2 DWARF 5":      {"g++", []string{"-O2", "-gdwarf-5"}, 1},
		"g++ O3 no PIE":       {"g++", []string{"-O3", "-no-pie"}, 1},
		"g++ O2 compressed":   {"g++", []string{"-O2", "-gz=zlib"}, 1},
		"g++ O2 zdebug":       {"g++", []string{"-O2", "-gz=zlib-gnu"}, 1},
		"g++ functions apart": {"g++", []string{"-O2", "-ffunction-sections", "-Wl,--gc-sections"}, 1},
		"clang++ O0 DWARF 5":  {"clang++", []string{"-O0", "-gdwarf-5"}, 1},
		"clang++ O2 DWARF 4":  {"clang++", []string{"-O2", "-gdwarf-4"}, 1},
		"clang++ O3 DWARF 5":  {"clang++", []string{"-O3", "-gdwarf-5", "-no-pie"}, 1},
		"clang++ 64-bit":      {"clang++", []string{"-O2", "-gdwarf-5", "-gdwarf64"}, 1},
		"clang++ lines only":  {"clang++", []string{"-O2", "-gline-tables-only"}, 1},
		"rustc O":             {"rustc", []string{"-O"}, 13},
		"rustc O0":            {"rustc", nil, 17},
		"go":                  {"go", nil, 19},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := compile(t, c.compiler, c.args...)
			table, err := build(t, program)
			require.NoError(t, err)
			requireFrames(t, program, c.step, table)
		})
	}
}

// separate splits a program in code and debug information.
func separate(t *testing.T, program string) (code, debugFile string) {
	t.Helper()
	dir := filepath.Dir(program)
	run(t, dir, "objcopy", "--only-keep-debug", "program", "program.debug")
	run(t, dir, "strip", "-o", "program.stripped", "program")
	return program + ".stripped", program + ".debug"
}

func TestSeparateDebugInformationGivesTheSame(t *testing.T) {
	for _, pie := range []string{"-pie", "-no-pie"} {
		program := compile(t, "g++", "-O2", pie)
		code, debugFile := separate(t, program)
		whole, err := build(t, program)
		require.NoError(t, err)
		both, err := build(t, code, debugFile)
		require.NoError(t, err)
		alone, err := build(t, "", debugFile)
		require.NoError(t, err)
		requireFrames(t, program, 3, both, alone)
		require.Equal(t, whole.Segments, both.Segments)
		require.Len(t, alone.Segments, 1)
		assert.True(t, alone.Segments[0].Guessed)
		assert.Equal(t, whole.Segments[0].Offset, alone.Segments[0].Offset)
		assert.Equal(t, whole.Segments[0].Address, alone.Segments[0].Address)

		info := readInfo(t, code)
		assert.Len(t, info.BuildID, 40)
		assert.Equal(t, symbols.Info{BuildID: info.BuildID, HasCode: true}, info)
		assert.Equal(t, symbols.Info{BuildID: info.BuildID, HasDWARF: true}, readInfo(t, debugFile))
	}
}

// shared compiles two programs, from which dwz moves what both have to a file.
func shared(t *testing.T, version string) (original, program, alt string) {
	t.Helper()
	original = compile(t, "g++", "-O2", version)
	dir := filepath.Dir(original)
	for _, name := range []string{"first", "second"} {
		data, err := os.ReadFile(original)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o700))
	}
	run(t, dir, "dwz", "-m", "alt", "-M", "alt", "first", "second")
	return original, filepath.Join(dir, "first"), filepath.Join(dir, "alt")
}

func TestDebugInformationThatDwzSharesGivesTheSame(t *testing.T) {
	for _, version := range []string{"-gdwarf-4", "-gdwarf-5"} {
		original, program, alt := shared(t, version)
		id := readInfo(t, program).AltID
		require.NotEmpty(t, id)
		require.Equal(t, id, readInfo(t, alt).BuildID)
		table, err := build(t, program, "", alt)
		require.NoError(t, err)
		requireFrames(t, original, 1, table)

		alone, err := build(t, program)
		require.NoError(t, err)
		for _, address := range addressesOf(t, original, 7) {
			want, err := table.Frames(nil, address)
			require.NoError(t, err)
			got, err := alone.Frames(nil, address)
			require.NoError(t, err)
			if len(want) == 0 {
				continue
			}
			require.Equal(t, []symbols.Frame{{Function: want[len(want)-1].Function}}, got, "the function, without lines")
		}
		_, err = build(t, program, "", source(t, "program.cc"))
		require.ErrorContains(t, err, "the file of .gnu_debugaltlink")
	}
}

// TestDebugInformationOfOtherLinkersHasNoGuessedSegments: lld does not place segments in the file as in memory.
func TestDebugInformationOfOtherLinkersHasNoGuessedSegments(t *testing.T) {
	if _, err := exec.LookPath("ld.lld"); err != nil {
		t.Skip("lld is not installed")
	}
	_, debugFile := separate(t, compile(t, "clang++", "-O2", "-fuse-ld=lld"))
	table, err := build(t, "", debugFile)
	require.NoError(t, err)
	assert.Empty(t, table.Segments)
}

func TestGoWithoutDWARFHasFunctionsAndLinesOfPclntab(t *testing.T) {
	for _, mode := range []string{"-buildmode=exe", "-buildmode=pie"} {
		program := compile(t, "go", "-ldflags=-s -w", mode)
		table, err := build(t, program)
		require.NoError(t, err)
		f, err := elf.Open(program)
		require.NoError(t, err)
		defer f.Close()
		section := f.Section(".gopclntab")
		if section == nil {
			section = f.Section(".data.rel.ro.gopclntab")
		}
		data, err := section.Data()
		require.NoError(t, err)
		want, err := gosym.NewTable(nil, gosym.NewLineTable(data, f.Section(".text").Addr))
		require.NoError(t, err)
		require.Greater(t, len(want.Funcs), 1000)
		for _, function := range want.Funcs {
			for pc := function.Entry; pc < function.End; pc += 11 {
				file, line, _ := want.PCToLine(pc)
				got, err := table.Frames(nil, pc)
				require.NoError(t, err)
				require.Equal(t, []symbols.Frame{{Function: function.Name, File: file, Line: int64(max(0, line))}}, got, "%#x", pc)
			}
		}
	}
}

func TestAddressesAreThoseOfTheFile(t *testing.T) {
	program := compile(t, "g++", "-O2")
	table, err := build(t, program)
	require.NoError(t, err)
	s := table.Segments[0]
	text := addressesOf(t, program, 64)[0]
	const base = 0x5555_0000_0000
	process := symbols.Mapping{Start: base + s.Offset, Limit: base + s.Offset + 0x1000, Offset: s.Offset}
	for name, c := range map[string]struct {
		mapping symbols.Mapping
		address uint64
		want    uint64
	}{
		"mapping of a process":               {process, base + s.Offset + text - s.Address, text},
		"mapping of the whole file":          {symbols.Mapping{Start: base, Limit: base + 0x10000}, base + s.Offset + text - s.Address, text},
		"mapping with addresses of the file": {symbols.Mapping{Start: s.Address, Limit: s.Address + s.Size, Offset: s.Offset}, text, text},
		"outside of the mapping":             {process, text, 0},
		"offset of data":                     {symbols.Mapping{Start: base, Limit: base + 0x1000, Offset: s.Offset + s.FileSize + 0x1000}, base + 8, 0},
		"offset that overflows":              {symbols.Mapping{Start: base, Limit: base + 0x1000, Offset: 1<<64 - 8}, base + 8, 0},
		"mapping of zeros":                   {symbols.Mapping{}, text, text},
		"mapping of the whole memory":        {symbols.Mapping{Limit: 1<<64 - 1}, text, text},
		"whole memory, outside of code":      {symbols.Mapping{Limit: 1<<64 - 1}, base + text, 0},
		"zeros, outside of code":             {symbols.Mapping{}, base + text, 0},
		"empty mapping":                      {symbols.Mapping{Start: base, Limit: base}, base, 0},
	} {
		got, ok := table.Address(c.mapping, c.address)
		assert.Equal(t, c.want != 0, ok, name)
		assert.Equal(t, c.want, got, name)
	}
	frames, err := table.Frames(nil, 0x100)
	require.NoError(t, err)
	assert.Empty(t, frames, "an address outside of executable sections")
}

func TestLimitsAreErrors(t *testing.T) {
	f := openFile(t, compile(t, "g++", "-O2"))
	for name, o := range map[string]symbols.Options{
		"max_memory allows":    {MaxMemory: 16 << 10, MaxFileSize: 1 << 30},
		"largest allowed file": {MaxMemory: 1 << 30, MaxFileSize: 16 << 10},
	} {
		o.Directory = t.TempDir()
		err := symbols.Build(t.Context(), symbols.Files{Program: f}, o, io.Discard)
		assert.ErrorContains(t, err, name)
		left, err := os.ReadDir(o.Directory)
		require.NoError(t, err)
		assert.Empty(t, left)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, symbols.Build(ctx, symbols.Files{Program: f}, symbols.Options{Directory: t.TempDir(), MaxMemory: 1 << 30, MaxFileSize: 1 << 30}, io.Discard), context.Canceled)
	assert.ErrorIs(t, symbols.Build(t.Context(), symbols.Files{}, symbols.Options{Directory: t.TempDir()}, io.Discard), symbols.ErrNoSymbols)
}

// requireNoPanic builds a table of files that may be damaged, and looks up addresses.
func requireNoPanic(t *testing.T, files symbols.Files) {
	table, err := buildFrom(t, files)
	if err != nil {
		return
	}
	for _, s := range table.Segments {
		for i := range uint64(16) {
			frames, err := table.Frames(nil, s.Address+s.Size*i/16)
			require.NoError(t, err)
			require.LessOrEqual(t, len(frames), 250)
		}
	}
}

// damaged returns copies of a file, of which some are cut and the others have bytes that are changed, half of them near the
// starts and middles of the sections that are read.
func damaged(t *testing.T, data []byte) (all [][]byte) {
	random := profiletest.NewRand(profiletest.Seed(t))
	f, err := elf.NewFile(bytes.NewReader(data))
	require.NoError(t, err)
	var places []uint64
	for _, s := range f.Sections {
		if s.Type == elf.SHT_SYMTAB || strings.HasPrefix(s.Name, ".debug") {
			places = append(places, s.Offset, s.Offset+s.Size/2)
		}
	}
	for i := range 120 {
		changed := bytes.Clone(data)
		for range 1 + i%4 {
			at := random.Uint64N(uint64(len(data)))
			if i%2 == 0 {
				at = places[random.IntN(len(places))] + random.Uint64N(200)
			}
			changed[min(at, uint64(len(data)-1))] = byte(random.Uint32())
		}
		all = append(all, changed)
		if i < 20 {
			all = append(all, data[:random.IntN(len(data))])
		}
	}
	return all
}

func TestDamagedFilesAreErrors(t *testing.T) {
	for _, program := range []string{compile(t, "g++", "-O2"), compile(t, "clang++", "-O1", "-gdwarf-4")} {
		data, err := os.ReadFile(program)
		require.NoError(t, err)
		for _, file := range damaged(t, data) {
			requireNoPanic(t, symbols.Files{Program: bytes.NewReader(file)})
		}
	}
	_, program, alt := shared(t, "-gdwarf-5")
	data, err := os.ReadFile(alt)
	require.NoError(t, err)
	for _, file := range damaged(t, data) {
		requireNoPanic(t, symbols.Files{Program: openFile(t, program), Alt: bytes.NewReader(file)})
	}
}

func FuzzBuild(f *testing.F) {
	for _, file := range exhausting() {
		if len(file) < 4096 { // the fuzzer is slow with large ones
			f.Add(file)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) { requireNoPanic(t, symbols.Files{Program: bytes.NewReader(data)}) })
}

// TestTablesThatAreCutAreErrors: a file that another program cuts while it is mapped does not end this one.
func TestTablesThatAreCutAreErrors(t *testing.T) {
	program := compile(t, "g++", "-O2")
	path, err := write(t, symbols.Files{Program: openFile(t, program)})
	require.NoError(t, err)
	table, err := symbols.Open(path)
	require.NoError(t, err)
	defer table.Close()
	address := addressesOf(t, program, 1)[0]
	frames, err := table.Frames(nil, address)
	require.NoError(t, err)
	require.NotEmpty(t, frames)
	require.NoError(t, os.Truncate(path, 0))
	_, err = table.Frames(nil, address)
	assert.ErrorContains(t, err, "cannot be read")
}

// TestDamagedTablesAreErrors: every flipped bit is noticed.
func TestDamagedTablesAreErrors(t *testing.T) {
	path, err := write(t, symbols.Files{Program: openFile(t, compile(t, "g++", "-O2"))})
	require.NoError(t, err)
	table, err := os.ReadFile(path)
	require.NoError(t, err)
	for at := range table {
		if at > 200 && at%97 != 0 {
			continue
		}
		flipped := bytes.Clone(table)
		flipped[at] ^= 1 << (at % 8)
		for _, data := range [][]byte{flipped, table[:at]} {
			require.NoError(t, os.WriteFile(path, data, 0o600))
			require.Error(t, symbols.Check(path), at)
		}
	}
}

// BenchmarkFrames looks up random addresses of a Go program, and those of llvm-symbolizer.
func BenchmarkFrames(b *testing.B) {
	program := compile(b, "go")
	table, err := build(b, program)
	require.NoError(b, err)
	s := table.Segments[0]
	addresses := make([]uint64, 20_000)
	var in bytes.Buffer
	for i := range addresses {
		addresses[i] = s.Address + rand.Uint64N(s.Size)
		fmt.Fprintf(&in, "%#x\n", addresses[i])
	}
	var ours float64 // nanoseconds
	b.Run("table", func(b *testing.B) {
		var frames []symbols.Frame
		for i := 0; b.Loop(); i++ {
			if frames, err = table.Frames(frames[:0], addresses[i%len(addresses)]); err != nil { // require takes a fifth of the time
				b.Fatal(err)
			}
		}
		ours = float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	})
	b.Run("llvm-symbolizer", func(b *testing.B) {
		tool, err := exec.LookPath("llvm-symbolizer")
		if err != nil {
			b.Skip("llvm-symbolizer is not installed")
		}
		for b.Loop() {
			cmd := exec.CommandContext(b.Context(), tool, "--obj="+program, "--inlines", "--no-demangle")
			cmd.Stdin = bytes.NewReader(in.Bytes())
			require.NoError(b, cmd.Run())
		}
		theirs := float64(b.Elapsed().Nanoseconds()) / float64(b.N*len(addresses))
		b.ReportMetric(theirs, "ns/address")
		b.ReportMetric(ours/theirs, "table/llvm-symbolizer")
	})
}
