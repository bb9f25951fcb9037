// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// otelprofProgram returns the path of the built program.
func otelprofProgram(t *testing.T) string {
	t.Helper()
	return builtProgram(t, "OTELPROF_BIN", "otelprof", "make build")
}

// otelprof runs the built program, and returns its exit code, output, errors and peak memory in bytes.
func otelprof(t *testing.T, args ...string) (code int, stdout, stderr string, peak int64) {
	t.Helper()
	command := exec.CommandContext(t.Context(), otelprofProgram(t), args...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	require.NoError(t, command.Start())
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for {
		// The usage of an ended process contains that of its parent before exec.
		if now, err := statusOf(command.Process.Pid, "VmHWM:"); err == nil {
			peak = max(peak, now)
		}
		select {
		case err := <-ended:
			if failed := (*exec.ExitError)(nil); !errors.As(err, &failed) {
				require.NoError(t, err)
			}
			return command.ProcessState.ExitCode(), out.String(), errs.String(), peak
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestOtelprofStaysWithinItsMemory reads a large record and files that would take much memory.
func TestOtelprofStaysWithinItsMemory_V1_V2(t *testing.T) {
	parallel(t)
	dir := t.TempDir()
	write := func(name string, parts ...[]byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, bytes.Join(parts, nil), 0o600))
		return path
	}
	length := func(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

	large := largeRecord(t)
	path := write("large.otlp.pb", length(len(large)), large)
	code, stdout, stderr, peak := otelprof(t, "top", "--max-memory", "1GiB", path)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "\nTotal: ")
	require.Less(t, peak, int64(1<<30))
	t.Logf("a record of %d MiB: peak RSS %d MiB", len(large)>>20, peak>>20)

	code, _, stderr, peak = otelprof(t, "top", "--max-memory", "256MiB", path)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "large.otlp.pb: record 1 at byte 0")
	require.Less(t, peak, int64(256<<20))

	var stack bytes.Buffer
	for i := range 300_000 {
		fmt.Fprintf(&stack, "function_with_a_name_%d;", i)
	}
	deep := write("deep.folded", stack.Bytes(), []byte("leaf 1\n"))
	for _, command := range [][]string{{"check"}, {"convert", "--format=pprof"}, {"convert", "--format=folded"}} {
		code, _, stderr, peak := otelprof(t, append(command, "--max-memory=256MiB", deep)...)
		require.Zero(t, code, stderr)
		require.Less(t, peak, int64(256<<20), command)
	}

	bomb := nested(bytes.Repeat([]byte{2<<3 | 2, 0}, 15<<20), 1, 2, 2)
	zeros := slices.Repeat(profiletest.Gzip(t, make([]byte, 8<<20)), 128)
	for name, parts := range map[string][][]byte{
		"bomb.otlp.pb":  {length(len(bomb)), bomb},
		"lies.otlp.pb":  {length(0x00ffffff), {0x0a, 0}},
		"zeros.pb.gz":   {zeros},
		"objects.json":  {[]byte(`{"resourceProfiles":[`), bytes.Repeat([]byte("{},"), 8<<20), []byte("{}]}\n")},
		"lines.folded":  {bytes.Repeat([]byte("a;b 1\n"), 4<<20)},
		"lists.json":    {[]byte(`{"resourceProfiles":`), bytes.Repeat([]byte("["), 16<<20), []byte("\n")},
		"samples.pprof": {{6<<3 | 2, 0}, bytes.Repeat([]byte{2<<3 | 2, 0}, 12<<20)},
	} {
		path := write(name, parts...)
		for _, command := range []string{"ls", "check"} {
			_, _, stderr, peak := otelprof(t, command, "--max-memory", "256MiB", path)
			require.Less(t, peak, int64(256<<20), "%s %s", command, name)
			require.NotContains(t, stderr, "goroutine ", "%s %s", command, name)
			t.Logf("%s %s: peak RSS %d MiB: %.150s", command, name, peak>>20, strings.TrimPrefix(stderr, "otelprof: "+path))
			require.Contains(t, stderr, "otelprof: "+path+": ")
		}
	}
	profiletest.Injected(t, fmt.Sprintf("a record of %d MiB, 7 malformed files", len(large)>>20))
}

// largeRecord returns a message of 64 MiB, of a profile with long names.
func largeRecord(t *testing.T) []byte {
	t.Helper()
	w := profiletest.Workloads()[3]
	w.Samples = 20_000
	p := w.Pprof(1)
	for i, f := range p.Function {
		f.Name += strings.Repeat(fmt.Sprint("[", i, "]"), (64<<20)/len(p.Function)/len(fmt.Sprint("[", i, "]")))
	}
	data := profiletest.Pprof(t, p)
	pd, err := (&pproftranslator.Unmarshaler{Limits: pproftranslator.Limits{DecompressedSize: 1 << 30}}).UnmarshalProfiles(data)
	require.NoError(t, err)
	message := profiletest.Proto(t, pd)
	require.Greater(t, len(message), 64<<20)
	return message
}
