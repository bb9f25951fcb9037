// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
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

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// closedIn returns the paths of the closed files of a directory, below it.
func closedIn(t testing.TB, dir string) (closed []string) {
	for _, name := range paths(t, dir) {
		if f, ok := layout.ParsePath(name); ok && !f.Partial {
			closed = append(closed, name)
		}
	}
	return closed
}

// countClosed counts the IDs in the closed files of a directory, by no code of ours. Each file has a record.
func countClosed(t testing.TB, dir string) map[int]int {
	t.Helper()
	counts := map[int]int{}
	for _, name := range closedIn(t, dir) {
		f, _ := layout.ParsePath(name)
		records := profiletest.ReadRecords(t, filepath.Join(dir, name))
		require.NotEmpty(t, records, name)
		for _, data := range records {
			countIDs(t, counts, f.Format, data)
		}
	}
	return counts
}

// contentsOf returns the content of the closed files of a directory, by path.
func contentsOf(t testing.TB, dir string) map[string]string {
	contents := map[string]string{}
	for _, name := range closedIn(t, dir) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		contents[name] = string(data)
	}
	return contents
}

const (
	killDir    = "STORE_TEST_KILL_DIR"
	killFormat = "STORE_TEST_KILL_FORMAT"
	killFirst  = "STORE_TEST_KILL_FIRST"
)

// writeUntilKilled is the process that TestKill_E3 kills. It prints the ID of each acknowledged record.
func writeUntilKilled() {
	format := segment.Format(os.Getenv(killFormat))
	id, _ := strconv.Atoi(os.Getenv(killFirst))
	w, err := store.OpenWriter(store.Options{
		Directory: os.Getenv(killDir), Format: format, Sync: store.SyncRecord, MaxOpen: 1, Rotation: store.Rotation{MaxRecords: 20}, Failed: func(error) {},
	})
	for ; err == nil; id++ {
		if err = w.Append(newRecord(panicking{}, format, "checkout", id, begin, begin)); err == nil {
			_, err = fmt.Println(id)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// panicking is a testing.TB outside of a test.
type panicking struct{ testing.TB }

func (panicking) Helper()                   {}
func (panicking) Errorf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (panicking) FailNow()                  { panic("failed") }

// TestKill_E3: a process is killed while it writes. What it acknowledged is there once, and closed files do not change.
func TestKill_E3(t *testing.T) {
	kills := profiletest.Rounds(t, 5, 500)
	for _, format := range []segment.Format{segment.Proto, segment.JSON} {
		t.Run(string(format), func(t *testing.T) {
			dir, last, torn := t.TempDir(), 0, 0
			acknowledged, before := map[int]bool{}, map[string]string{}
			for range kills {
				cmd := exec.CommandContext(t.Context(), os.Args[0])
				cmd.Env = append(os.Environ(), killDir+"="+dir, killFormat+"="+string(format), killFirst+"="+strconv.Itoa(last+1))
				cmd.Stderr = os.Stderr
				out, err := cmd.StdoutPipe()
				require.NoError(t, err)
				require.NoError(t, cmd.Start())
				for lines := bufio.NewScanner(out); lines.Scan(); { // the first one says that it writes
					last, err = strconv.Atoi(lines.Text())
					require.NoError(t, err)
					acknowledged[last] = true
					if rand.IntN(40) == 0 {
						_ = cmd.Process.Kill() // lines may still follow
					}
				}
				require.EqualError(t, cmd.Wait(), "signal: killed")
				cut := 0
				w, err := store.OpenWriter(store.Options{
					Directory: dir, Format: format, MaxOpen: 1, Failed: func(err error) { assert.NoError(t, err) },
					FileRecovered: func(r store.RecoveredFile) {
						if r.Truncated > 0 {
							cut++
						}
					},
				})
				require.NoError(t, err)
				require.NoError(t, w.Close())
				require.LessOrEqual(t, cut, 1, "torn records")
				torn += cut
				got := countClosed(t, dir)
				require.LessOrEqual(t, len(got), last+1, "one record may not have been acknowledged")
				for id := 1; id <= max(last, len(got)); id++ {
					require.Equal(t, 1, got[id], id)
				}
				last = len(got)
				now := contentsOf(t, dir)
				for name, content := range before {
					require.Equal(t, content, now[name], name)
				}
				before = now
			}
			profiletest.Account(t, fmt.Sprintf("%d SIGKILL, %d torn records", kills, torn), len(acknowledged), len(acknowledged), 0)
		})
	}
}

// TestRestarts_E5: a start changes no file, also if the clock stands.
func TestRestarts_E5(t *testing.T) {
	d, before := newDirectory(t), map[string]string{}
	rounds := profiletest.Rounds(t, 50, 100)
	for id := range rounds {
		d.write(id)
		now := contentsOf(t, d.dir)
		require.Len(t, now, id+1)
		for name, content := range before {
			require.Equal(t, content, now[name], name)
		}
		before = now
	}
	profiletest.Account(t, fmt.Sprintf("%d restarts", rounds), rounds, len(d.counts()), 0)
}

// TestManyWriters_E7: two processes of eight goroutines each write to a directory, beside a reader and with a clock that steps back.
func TestManyWriters_E7(t *testing.T) {
	each := profiletest.Rounds(t, 50, 250) // of each goroutine: 1,000 files
	dir := t.TempDir()
	var mu sync.Mutex
	now, steps, closed := begin.Add(30*time.Minute), 0, 0
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	var writers []*store.Writer
	for range 2 {
		w, err := store.OpenWriter(store.Options{
			Directory: dir, Format: segment.Proto, MaxOpen: 4, Rotation: store.Rotation{MaxRecords: 4}, Now: clock, OpenDir: (&process{}).openDir,
			FileClosed: func(store.ClosedFile) { mu.Lock(); closed++; mu.Unlock() }, Failed: func(err error) { assert.NoError(t, err) },
		})
		require.NoError(t, err)
		writers = append(writers, w)
	}
	stop := make(chan struct{})
	var reading, writing sync.WaitGroup
	reading.Go(func() {
		s := openStore(t, dir)
		for {
			select {
			case <-stop:
				return
			default:
			}
			mu.Lock()
			now = now.Add(-time.Millisecond)
			steps++
			mu.Unlock()
			writers[0].Tick()
			writers[0].CloseDue()
			readAll(t, s)
		}
	})
	var want []int
	for g := range 16 {
		for i := range each {
			want = append(want, g*each+i)
		}
		writing.Go(func() {
			for i := range each {
				assert.NoError(t, writers[g%2].Append(newRecord(t, segment.Proto, "checkout", g*each+i, begin, begin)))
			}
		})
	}
	writing.Wait()
	close(stop)
	reading.Wait()
	for _, w := range writers {
		require.NoError(t, w.Close())
	}
	got := countClosed(t, dir)
	require.Equal(t, once(want...), got)
	files := closedIn(t, dir)
	require.Len(t, files, closed)
	require.GreaterOrEqual(t, closed, 16*each/4)
	profiletest.Account(t, fmt.Sprintf("%d rotations of 2 writers by 16 goroutines, %d steps back of the clock", closed, steps), len(want), len(got), 0)
	tool, err := exec.LookPath("zstd")
	if err != nil {
		t.Skip("zstd is not installed")
	}
	out, err := exec.CommandContext(t.Context(), tool, "-t", "-q", filepath.Join(dir, files[0]), filepath.Join(dir, files[len(files)-1])).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// malformedValues are different values of a group.
func malformedValues(n int) (values []string) {
	values = []string{
		"", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", "\x00", "a\x00b", strings.Repeat("x", 5000), strings.Repeat("x", 4999) + "y", "x", "X",
		"_unset", "_other", "_empty", "service.name=x", "2026", "2026/11/28/14", "14_0123456789ab", "con", "COM1.txt", " ", "a ", "a.", "~", "%2E", "\xff\xfe", "é",
	}
	const odd = "./\\\x00%_=~ aA\xff:*"
	random := profiletest.NewRand(1)
	for len(values) < n {
		bytes := make([]byte, 8+random.IntN(20))
		for i := range bytes {
			bytes[i] = odd[random.IntN(len(odd))]
		}
		values = append(values, string(bytes)+strconv.Itoa(len(values)))
	}
	return values
}

// TestMalformedGroupValues_E10: no value leads out of the directory, or to the directory of another one; planted links are not followed.
func TestMalformedGroupValues_E10(t *testing.T) {
	n, above := profiletest.Rounds(t, 300, 10_000), t.TempDir()
	dir, outside := filepath.Join(above, "base", "profiles"), filepath.Join(above, "outside")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.Mkdir(outside, 0o700))
	planted := []string{"planted-0", "planted-1", "planted-2", "planted-3"}
	for i, target := range []string{outside, "../../outside", "nowhere"} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, layout.GroupDir("service.name", planted[i]))))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, layout.GroupDir("service.name", planted[3])), []byte("x"), 0o600))
	d := &directory{t: t, dir: dir, now: begin, process: &process{}, format: segment.Proto}
	w := d.open(func(o *store.Options) { o.MaxOpen = 20 })
	groups := map[string]string{}
	values := malformedValues(n)
	for id, value := range values {
		record := newRecord(t, segment.Proto, "checkout", id, begin, begin)
		record.Group = []string{layout.GroupDir("service.name", layout.GroupName(value))}
		other, taken := groups[record.Group[0]]
		require.False(t, taken, "%q and %q share %s", value, other, record.Group[0])
		groups[record.Group[0]] = value
		require.NoError(t, w.Append(record), "%q", value)
	}
	for _, value := range planted {
		require.ErrorIs(t, w.Append(newRecord(t, segment.Proto, value, 0, begin, begin)), layout.ErrNotDirectory)
	}
	require.NoError(t, w.Close())
	require.Empty(t, paths(t, outside))
	for _, name := range paths(t, above) {
		require.True(t, strings.HasPrefix(name, "base/profiles/"), name)
	}
	got := countClosed(t, dir)
	profiletest.Account(t, fmt.Sprintf("%d malformed values, %d planted links and files", n, len(planted)), len(values), len(got), 0)
	require.Len(t, got, len(values))
}

func descriptors(t testing.TB) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("there is no /proc")
	}
	return len(entries)
}

// TestManyGroups_E12: the descriptors are bounded, however many groups there are.
func TestManyGroups_E12(t *testing.T) {
	groups, maxOpen, writers := profiletest.Rounds(t, 150, 10_000), profiletest.Rounds(t, 10, 100), 16
	d, before := newDirectory(t), descriptors(t)
	w := d.open(func(o *store.Options) { o.MaxOpen, o.Rotation = maxOpen, store.Rotation{MaxRecords: 5} })
	stop, most := make(chan struct{}), 0
	var ticking, writing sync.WaitGroup
	ticking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				w.Tick()
				w.CloseDue()
				w.Maintain()
				most = max(most, descriptors(t)-before)
			}
		}
	})
	for i := range writers {
		writing.Go(func() {
			for id := i; id < 6*groups; id += writers {
				assert.NoError(t, w.Append(newRecord(t, segment.Proto, "group-"+strconv.Itoa(id*7919%groups), id, begin, begin)))
			}
		})
	}
	writing.Wait()
	close(stop)
	ticking.Wait()
	require.NoError(t, w.Close())
	require.LessOrEqual(t, most, 3*(maxOpen+writers+8)+10*writers+5, "three of each open file, and those of calls")
	got := countClosed(t, d.dir)
	profiletest.Account(t, fmt.Sprintf("%d writers into %d groups for %d open files", writers, groups, maxOpen), 6*groups, len(got), 0)
	require.Len(t, got, 6*groups)
	for id, n := range got {
		require.Equal(t, 1, n, id)
	}
}

// TestRotationOfFiles_E13: a file has at most as many bytes and records as it may, but for one record that is larger.
func TestRotationOfFiles_E13(t *testing.T) {
	d := newDirectory(t)
	length := int64(0)
	w := d.open(func(o *store.Options) {
		o.RecordWritten = func(_ store.Record, stored int64, _ bool) { length = max(length, stored) }
	})
	require.NoError(t, w.Append(newRecord(t, d.format, "checkout", 0, d.now, d.now)))
	require.NoError(t, w.Close())
	for name, tt := range map[string]struct {
		rotation store.Rotation
		records  []int // of the closed files
		reason   store.Reason
	}{
		"records":                     {store.Rotation{MaxRecords: 2}, []int{2, 2, 1}, store.ByRecords},
		"size":                        {store.Rotation{MaxSize: 3 * (length + 10)}, []int{3, 2}, store.BySize},
		"a record larger than a file": {store.Rotation{MaxSize: 10}, []int{1, 1, 1, 1, 1}, store.BySize},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDirectory(t)
			var closed []store.ClosedFile
			w := d.open(func(o *store.Options) {
				o.Rotation, o.FileClosed = tt.rotation, func(f store.ClosedFile) { closed = append(closed, f) }
			})
			for id := range 5 {
				require.NoError(t, w.Append(newRecord(t, d.format, "checkout", id, d.now, d.now)))
			}
			require.NoError(t, w.Close())
			require.Len(t, closed, len(tt.records))
			for i := range closed {
				require.Equal(t, tt.records[i], closed[i].Samples, "each record has one")
				if i < len(closed)-1 {
					require.Equal(t, tt.reason, closed[i].Reason)
				}
			}
			require.Len(t, d.counts(), 5)
		})
	}
}
