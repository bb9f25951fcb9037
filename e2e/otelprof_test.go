// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
		peak = max(peak, peakOf(command.Process.Pid))
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

var vmHWM = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// peakOf returns the peak RSS of a process in bytes, 0 if the system does not say.
func peakOf(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	if found := vmHWM.FindSubmatch(status); found != nil {
		kilobytes, _ := strconv.ParseInt(string(found[1]), 10, 64)
		return kilobytes << 10
	}
	return 0
}

// TestOtelprofReadsWhatTheCollectorWrites reads the files of a running collector and of one that
// has stopped.
func TestOtelprofReadsWhatTheCollectorWrites_V1(t *testing.T) {
	parallel(t)
	c := start(t, "100ms", "    rotation: {max_records: 3, max_age: 1h}")
	for _, p := range payloads(t) {
		if len(p.data) < 64<<10 {
			c.push(t, p.service, p.data)
		}
	}
	c.await(t, "a file", func() bool {
		code, stdout, stderr, _ := otelprof(t, "ls", c.files)
		notYet := []string{"no such file", "no files in", "no profiles match"}
		if code != 0 && !slices.ContainsFunc(notYet, func(reason string) bool { return strings.Contains(stderr, reason) }) {
			t.Fatalf("an incomplete record is no error: %s", stderr)
		}
		return code == 0 && strings.Contains(stdout, "SERVICE")
	})
	c.stop(t)

	code, stdout, stderr, _ := otelprof(t, "check", c.files)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "0 violations, 0 warnings")
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
	require.Contains(t, stdout, "Showing nodes accounting for")
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

	nest := func(field byte, content []byte) []byte {
		return append(binary.AppendUvarint([]byte{field<<3 | 2}, uint64(len(content))), content...)
	}
	bomb := nest(1, nest(2, nest(2, bytes.Repeat([]byte{2<<3 | 2, 0}, 15<<20))))
	var zeros bytes.Buffer
	w := gzip.NewWriter(&zeros)
	for range 1024 {
		_, err := w.Write(make([]byte, 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	for name, parts := range map[string][][]byte{
		"bomb.otlp.pb":  {length(len(bomb)), bomb},
		"lies.otlp.pb":  {length(0x00ffffff), {0x0a, 0}},
		"zeros.pb.gz":   {zeros.Bytes()},
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
