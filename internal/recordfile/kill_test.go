// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// The environment of a process that writes until it is killed.
const (
	killDir    = "SEGMENT_TEST_KILL_DIR"
	killFormat = "SEGMENT_TEST_KILL_FORMAT"
	killFirst  = "SEGMENT_TEST_KILL_FIRST"
	killSize   = 3000
)

// writeUntilKilled prints the id of each record once it is acknowledged.
func writeUntilKilled() {
	which, _ := strconv.Atoi(os.Getenv(killFormat))
	id, _ := strconv.Atoi(os.Getenv(killFirst))
	format := allFormats[which]
	w, err := openWriter(os.Getenv(killDir), Options{Format: format, Sync: SyncRecord, Rotation: Rotation{MaxRecords: 20}})
	for ; err == nil; id++ {
		if err = w.Append(plainRecord(format.Content, id, killSize)); err == nil {
			_, err = fmt.Println(id)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// TestKill_E3 kills a writing process again and again: nothing that it has
// acknowledged is lost, nothing is there twice, and what was finished stays as it was.
func TestKill_E3(t *testing.T) {
	kills := profiletest.Rounds(t, 3, 100) // of each of ten formats
	forEachFormat(t, func(t *testing.T, format Format) {
		dir := t.TempDir()
		which := slices.Index(allFormats, format)
		last := 0
		acknowledged, torn := map[int]bool{}, 0
		finished := map[string]string{}
		for range kills {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), killDir+"="+dir, killFormat+"="+strconv.Itoa(which), killFirst+"="+strconv.Itoa(last+1))
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			lines := bufio.NewScanner(out)
			// The first line says that it writes.
			for lines.Scan() {
				last, err = strconv.Atoi(lines.Text())
				require.NoError(t, err)
				acknowledged[last] = true
				if cmd.ProcessState == nil && rand.IntN(40) == 0 {
					_ = cmd.Process.Kill() // lines may still follow
				}
			}
			require.EqualError(t, cmd.Wait(), "signal: killed")

			// One record may have been written and not yet acknowledged.
			cut := 0
			w := openTestWriter(t, dir, Options{Format: format, FileRecovered: func(r RecoveredFile) {
				if r.Truncated > 0 {
					cut++
				}
			}})
			require.NoError(t, w.Close())
			assert.LessOrEqual(t, cut, 1, "torn tails")
			torn += cut
			got := readAll(t, dir, killSize)
			want := []int{}
			for id := 1; id <= max(last, len(got)); id++ {
				want = append(want, id)
			}
			require.Equal(t, want, got)
			assert.LessOrEqual(t, len(got), last+1)
			last = len(got)
			for _, name := range list(t, dir) {
				data, err := os.ReadFile(filepath.Join(dir, name))
				require.NoError(t, err)
				if before, known := finished[name]; known {
					require.Equal(t, before, string(data), name)
				}
				finished[name] = string(data)
			}
			time.Sleep(2 * time.Millisecond) // names of the rounds sort by time
		}
		readable := 0
		for _, id := range readAll(t, dir, killSize) {
			if acknowledged[id] {
				readable++
			}
		}
		assert.Len(t, acknowledged, readable)
		profiletest.Account(t, fmt.Sprintf("%d SIGKILL, %d torn tails", kills, torn), len(acknowledged), readable, 0)
	})
}
