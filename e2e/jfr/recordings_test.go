// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package jfr compares the translation of JFR recordings with two other parsers: that of the
// JDK, and grafana/jfr-parser, in whose module the recordings are.
package jfr

import (
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
)

// recording is one of jfr-parser's module.
type recording struct {
	name string
	data []byte
}

func recordings(t testing.TB) (all []recording) {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/grafana/jfr-parser").Output()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "parser/testdata/*.jfr.gz"))
	require.NoError(t, err)
	require.Len(t, files, 27)
	for _, name := range files {
		file, err := os.Open(name)
		require.NoError(t, err)
		from, err := gzip.NewReader(file)
		require.NoError(t, err)
		data, err := io.ReadAll(from)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		all = append(all, recording{strings.TrimSuffix(filepath.Base(name), ".jfr.gz"), data})
	}
	return all
}

// chunks returns the chunks of a recording, each of which is a recording.
func chunks(data []byte) (all [][]byte) {
	for len(data) > 0 {
		size := binary.BigEndian.Uint64(data[8:])
		all = append(all, data[:size])
		data = data[size:]
	}
	return all
}

// sums are both values of the samples of a kind, thread, state and stack.
type sums map[string][2]int64

func (s sums) add(key string, first, second int64) {
	sum := s[key]
	s[key] = [2]int64{sum[0] + first, sum[1] + second}
}

// translated sums what we make of a recording. Samples of CPU time and of the clock are of
// one kind, whose second value is left out. Keys have threads and states.
func translated(t testing.TB, data []byte) sums {
	t.Helper()
	pd, err := (&jfrtranslator.Unmarshaler{}).UnmarshalProfiles(data)
	require.NoError(t, err)
	profiles, err := expand.Profiles(pd)
	require.NoError(t, err)
	all := sums{}
	for _, sp := range pd.ResourceProfiles().At(0).ScopeProfiles().All() {
		scope := profiles[:sp.Profiles().Len()]
		profiles = profiles[len(scope):]
		kind := scope[0].Type
		if kind == "contentions" {
			kind = expand.Text(scope[0].Scope.Attributes, attrkey.ProfileType) + " " + kind
		}
		for i, p := range scope {
			for _, s := range p.Samples {
				thread, _ := expand.Value(s.Attributes, "thread.id").(int64)
				key := fmt.Sprintf("%s\t%s\t%d\t%s\t%s", kind, expand.Text(s.Attributes, "thread.name"), thread, expand.Text(s.Attributes, attrkey.ThreadState), stack(s))
				switch {
				case i == 0:
					all.add(key, s.Sum.Int64(), 0)
				case kind != "samples":
					all.add(key, 0, s.Sum.Int64())
				}
			}
		}
	}
	return all
}

// stack writes a stack as Dump.java does.
func stack(s *expand.Sample) string {
	var frames []string
	for _, frame := range s.Stack {
		line := frame.Lines[0]
		name := line.SystemName
		if name == "" {
			name = line.Function
			if frame.Mapping.File != "" {
				name = frame.Mapping.File + "." + name
			}
		}
		frames = append(frames, fmt.Sprintf("%s:%d", name, line.Line))
	}
	return strings.ReplaceAll(strings.Join(frames, ";"), "/", ".")
}

// requireSame fails with the first few differences. Durations may differ by a nanosecond of
// each event: the JDK rounds their start and their end.
func requireSame(t testing.TB, want, got sums) {
	t.Helper()
	differences := 0
	differ := func(key string) {
		count, rounded := want[key][0], want[key][1]-got[key][1]
		if count == got[key][0] && (rounded == 0 || (strings.Contains(key, "contentions\t") || strings.HasPrefix(key, "events\t")) && max(rounded, -rounded) <= count) {
			return
		}
		if differences++; differences < 4 {
			t.Errorf("%s: is %v: must be %v", key[:min(len(key), 400)], got[key], want[key])
		}
	}
	for key := range want {
		differ(key)
	}
	for key := range got {
		if _, both := want[key]; !both {
			differ(key)
		}
	}
	if differences > 0 {
		t.Fatalf("%d of %d sums differ", differences, len(want))
	}
}

func TestRecordingsConform(t *testing.T) {
	for _, r := range recordings(t) {
		t.Run(r.name, func(t *testing.T) {
			if full, _ := profiletest.Soak(t); !full && len(r.data) > 5e6 { // as large as all others together
				t.Skip("large")
			}
			requireConforms(t, r.data)
		})
	}
}
