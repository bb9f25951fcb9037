// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
)

// jdk skips the test if there is no JDK with a compiler and JFR.
func jdk(t testing.TB) {
	t.Helper()
	for _, program := range []string{"java", "javac", "jfr"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
}

// dump sums recordings by the JDK's parser. Of a recording that it rejects it returns the
// error.
func dump(t testing.TB, files ...string) (all map[string]sums, failed map[string]string) {
	t.Helper()
	command := exec.Command("java", append([]string{"-Xmx1g", "testdata/Dump.java"}, files...)...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, stderr.String())
	all, failed = map[string]sums{}, map[string]string{}
	file := ""
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		what, rest, _ := strings.Cut(lines.Text(), "\t")
		switch what {
		case "file":
			file = rest
			all[file] = sums{}
		case "error":
			failed[file] = rest
			delete(all, file)
		case "sum":
			fields := strings.SplitN(rest, "\t", 3)
			first, err := strconv.ParseInt(fields[0], 10, 64)
			require.NoError(t, err)
			second, err := strconv.ParseInt(fields[1], 10, 64)
			require.NoError(t, err)
			all[file].add(fields[2], first, second)
		}
	}
	require.NoError(t, lines.Err())
	return all, failed
}

// writeChunks writes each chunk of a recording to a file, and returns them by file.
func writeChunks(t testing.TB, r recording) map[string][]byte {
	t.Helper()
	directory, all := t.TempDir(), map[string][]byte{}
	for i, chunk := range chunks(r.data) {
		file := filepath.Join(directory, fmt.Sprintf("%s-%d", r.name, i))
		require.NoError(t, os.WriteFile(file, chunk, 0o600))
		all[file] = chunk
	}
	return all
}

// In each chunk, for every kind, thread, state and stack, both sums are those of the JDK's
// parser. It rejects two chunks, because of pools without constants. The large recordings are
// left to the soak test.
func TestSumsOfEachChunkAreThoseOfTheJDK_J3_J4(t *testing.T) {
	jdk(t)
	full, _ := profiletest.Soak(t)
	data := map[string][]byte{}
	for _, r := range recordings(t) {
		if len(r.data) > 1e6 && !full {
			continue
		}
		for file, chunk := range writeChunks(t, r) {
			data[file] = chunk
		}
	}
	all, failed := dump(t, slices.Collect(maps.Keys(data))...)
	for file, reason := range failed {
		assert.Contains(t, reason, "must contain at least one element")
		assert.Contains(t, []string{"FastSlow_2024_01_16_180855-1", "event-with-type-zero-2"}, filepath.Base(file))
	}
	for file, want := range all {
		t.Run(filepath.Base(file), func(t *testing.T) {
			requireSame(t, want, translated(t, data[file]))
		})
	}
}

// frame is the end of a frame: its line.
var frame = regexp.MustCompile(`:\d+(;|$)`)

// A program that computes, allocates, waits for monitors, parks, and throws exceptions through 600 frames is
// recorded here in two chunks or more. The soak test does so with fewer frames, too, and with settings of the JDK.
//
// The JDK's parser reads each chunk alone. Of several, it gives the first event of a chunk the stack of the last event
// of its type before, if both have the same id, although the JVM wrote that stack to the earlier chunk only.
func TestFreshRecordingIsThatOfTheJDK_J4(t *testing.T) {
	jdk(t)
	for name, test := range map[string]struct {
		settings string
		depth    int
	}{
		"whole stacks": {"testdata/load.jfc", 1024},
		"64 frames":    {"testdata/load.jfc", 64},
		"profile.jfc":  {"profile", 5},
	} {
		t.Run(name, func(t *testing.T) {
			if full, _ := profiletest.Soak(t); !full && test.depth < 1024 {
				t.Skip("takes long")
			}
			file := filepath.Join(t.TempDir(), "load.jfr")
			out, err := exec.Command("java", "-XX:FlightRecorderOptions:stackdepth="+strconv.Itoa(test.depth),
				"-XX:StartFlightRecording:settings="+test.settings+",filename="+file, "testdata/Load.java", "1500").CombinedOutput()
			require.NoError(t, err, string(out))
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			files := writeChunks(t, recording{"load", data})
			assert.Greater(t, len(files), 1)
			all, failed := dump(t, slices.Collect(maps.Keys(files))...)
			require.Empty(t, failed)
			want := sums{}
			for _, chunk := range all {
				for key, sum := range chunk {
					want.add(key, sum[0], sum[1])
				}
			}
			got := translated(t, data)
			requireSame(t, want, got)
			found, depth := map[string]bool{}, 0
			for key := range got {
				kind, _, _ := strings.Cut(key, "\t")
				depth = max(depth, len(frame.FindAllString(key, -1)))
				for _, method := range []string{"Load.spin", "Load.allocate", "Load.hold", "Load.park", "Load.await", "Load.write", "Load.read"} {
					found[kind+" "+method] = found[kind+" "+method] || strings.Contains(key, method) && strings.Contains(key, "lädt-")
				}
			}
			if assert.LessOrEqual(t, depth, test.depth); test.depth > 600 {
				assert.Greater(t, depth, 600)
			}
			for _, want := range []string{"samples Load.spin", "alloc_sample_objects Load.allocate", "mutex contentions Load.hold", "block contentions Load.park", "block contentions Load.await", "events Load.hold", "events Load.write", "events Load.read"} {
				assert.True(t, found[want], want)
			}
			requireConforms(t, data)
		})
	}
}

// The repository of a JVM that was killed has a chunk that was not finished.
func TestChunkOfAKilledJVMIsRead_J3(t *testing.T) {
	jdk(t)
	repository := t.TempDir()
	command := exec.Command("java", "-XX:FlightRecorderOptions:repository="+repository,
		"-XX:StartFlightRecording:settings=testdata/load.jfc,flush-interval=200ms", "testdata/Load.java", "600000")
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	require.Eventually(t, func() bool {
		u := &jfrtranslator.Unmarshaler{}
		for _, data := range chunksIn(t, repository) {
			if pd, err := u.UnmarshalProfiles(data); err == nil && pd.SampleCount() > 50 {
				return true
			}
		}
		return false
	}, time.Minute, 200*time.Millisecond, "while the JVM runs")
	require.NoError(t, command.Process.Kill())
	_ = command.Wait()
	unfinished := 0
	for _, data := range chunksIn(t, repository) {
		if state := data[64]; state != 0 {
			unfinished++
		}
		requireConforms(t, data)
	}
	assert.Positive(t, unfinished)
}

func chunksIn(t testing.TB, repository string) (all [][]byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, "*", "*.jfr"))
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		all = append(all, data)
	}
	return all
}

func requireConforms(t testing.TB, data []byte) {
	t.Helper()
	for _, timestamps := range []bool{false, true} {
		pd, err := (&jfrtranslator.Unmarshaler{Timestamps: timestamps}).UnmarshalProfiles(data)
		require.NoError(t, err)
		for _, violation := range conformance.Check(pd).Violations() {
			t.Error(violation)
		}
	}
}
