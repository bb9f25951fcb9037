// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// ofSymbols has a sample of each function: 100, 101, and so on.
func ofSymbols(functions ...*profile.Function) *profile.Profile {
	p := cpuRun(nil)
	mapping := &profile.Mapping{ID: 1, Start: 0x1000, Limit: 0x9000, File: "/bin/app", HasFunctions: true}
	p.Mapping, p.Function, p.Location, p.Sample = []*profile.Mapping{mapping}, functions, nil, nil
	for i, f := range functions {
		f.ID = uint64(i + 1)
		l := &profile.Location{ID: f.ID, Mapping: mapping, Address: 0x1000 + f.ID, Line: []profile.Line{{Function: f}}}
		p.Location = append(p.Location, l)
		value := make([]int64, len(p.SampleType))
		for j := range value {
			value[j] = int64(100 + i)
		}
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{l}, Value: value})
	}
	return p
}

// A function is shown by its name, or else its symbol, which is demangled, as by go tool pprof.
func TestFunctionsAreShownAsGoToolPprofShowsThem(t *testing.T) {
	const write = "_ZN4core3fmt5write17h01e2f3a4b5c6d7e8E"
	p := ofSymbols(
		&profile.Function{SystemName: "only_symbol"}, &profile.Function{SystemName: "other_symbol"},
		&profile.Function{Name: "_ZN3foo3barEv", SystemName: "_ZN3foo3barEv"}, &profile.Function{Name: write, SystemName: write},
		&profile.Function{Name: "main.main", SystemName: "main.main"}, &profile.Function{Name: "made(int)", SystemName: "_Z4madei"},
	)
	var data bytes.Buffer
	require.NoError(t, p.Write(&data))
	path := profiletest.WriteFile(t, "symbols.pb.gz", data.Bytes())
	want := []string{"only_symbol 100", "other_symbol 101", "foo::bar 102", "core::fmt::write 103", "main.main 104", "made(int) 105"}

	program, err := pprofProgram()
	require.NoError(t, err)
	oracle, err := exec.CommandContext(t.Context(), strings.TrimSpace(string(program)), "-top", "-nodecount=99", path).Output()
	require.NoError(t, err)
	listed := func(top string) (rows []string) {
		for name, row := range topRows(top) {
			rows = append(rows, fmt.Sprint(name, " ", row.flat))
		}
		return rows
	}
	require.ElementsMatch(t, want, listed(string(oracle)))
	assert.ElementsMatch(t, want, listed(succeed(t, "top", "--type", "cpu", path)))
	assert.ElementsMatch(t, want, strings.Split(strings.TrimSpace(succeed(t, "convert", "--format", "folded", "--type", "cpu", path)), "\n"))

	// A pprof keeps the symbols, and each function has a name.
	converted := filepath.Join(t.TempDir(), "converted.pb.gz")
	succeed(t, "convert", "--format", "pprof", "-o", converted, path)
	names := map[string]string{}
	content, err := os.ReadFile(converted)
	require.NoError(t, err)
	for _, f := range parse(t, content).Function {
		names[f.SystemName] = f.Name
	}
	assert.Equal(t, map[string]string{
		"only_symbol": "only_symbol", "other_symbol": "other_symbol", "_ZN3foo3barEv": "_ZN3foo3barEv", write: write, "main.main": "main.main", "_Z4madei": "made(int)",
	}, names)
	assert.Contains(t, succeed(t, "convert", "--format", "json", path), `"only_symbol"`)

	// A difference names them, too.
	base := ofSymbols(&profile.Function{SystemName: "only_symbol"})
	data.Reset()
	require.NoError(t, base.Write(&data))
	report := succeed(t, "diff", "--format", "json", profiletest.WriteFile(t, "base.pb.gz", data.Bytes()), path)
	for _, row := range want {
		name, _, _ := strings.Cut(row, " ")
		assert.Contains(t, report, name)
	}
}
