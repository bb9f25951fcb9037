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
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
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

// skipLarge leaves two recordings, which are as large as all others together, to the soak test.
func skipLarge(t testing.TB, r recording) {
	t.Helper()
	if full, _ := profiletest.Soak(t); !full && len(r.data) > 5e6 {
		t.Skip("large")
	}
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
	r := reader{dict: pd.Dictionary(), stacks: map[int32]string{}}
	all := sums{}
	for _, sp := range pd.ResourceProfiles().At(0).ScopeProfiles().All() {
		kind := r.text(sp.Profiles().At(0).SampleType().TypeStrindex())
		profileType, _ := sp.Scope().Attributes().Get("profile.type")
		if kind == "contentions" {
			kind = profileType.Str() + " " + kind
		}
		for i, s := range sp.Profiles().At(0).Samples().All() {
			key := kind + "\t" + r.attribute(s, "thread.name", "") + "\t" + r.attribute(s, "thread.id", "0") + "\t" + r.attribute(s, "thread.state", "") + "\t"
			second := int64(0)
			if kind != "samples" {
				second = sp.Profiles().At(1).Samples().At(i).Values().At(0)
			}
			all.add(key+r.stack(s.StackIndex()), s.Values().At(0), second)
		}
	}
	return all
}

type reader struct {
	dict   pprofile.ProfilesDictionary
	stacks map[int32]string
}

func (r *reader) text(i int32) string { return r.dict.StringTable().At(int(i)) }

func (r *reader) attribute(s pprofile.Sample, key, missing string) string {
	for _, i := range s.AttributeIndices().All() {
		if a := r.dict.AttributeTable().At(int(i)); r.text(a.KeyStrindex()) == key {
			return a.Value().AsString()
		}
	}
	return missing
}

// stack writes a stack as Dump.java does.
func (r *reader) stack(i int32) string {
	if text, known := r.stacks[i]; known {
		return text
	}
	var frames []string
	for _, l := range r.dict.StackTable().At(int(i)).LocationIndices().All() {
		location := r.dict.LocationTable().At(int(l))
		line := location.Lines().At(0)
		function := r.dict.FunctionTable().At(int(line.FunctionIndex()))
		name := r.text(function.SystemNameStrindex())
		if name == "" {
			name = r.text(function.NameStrindex())
			if file := r.text(r.dict.MappingTable().At(int(location.MappingIndex())).FilenameStrindex()); file != "" {
				name = file + "." + name
			}
		}
		frames = append(frames, fmt.Sprintf("%s:%d", name, line.Line()))
	}
	r.stacks[i] = strings.ReplaceAll(strings.Join(frames, ";"), "/", ".")
	return r.stacks[i]
}

// requireSame fails with the first few differences. Durations may differ by a nanosecond of
// each event: the JDK rounds their start and their end.
func requireSame(t testing.TB, want, got sums) {
	t.Helper()
	differences := 0
	differ := func(key string) {
		count, rounded := want[key][0], want[key][1]-got[key][1]
		if count == got[key][0] && (rounded == 0 || strings.Contains(key, "contentions\t") && max(rounded, -rounded) <= count) {
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
			skipLarge(t, r)
			requireConforms(t, r.data)
		})
	}
}
