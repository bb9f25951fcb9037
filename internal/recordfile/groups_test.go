// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// readTree gives the ids in all finished files at and below a directory, by group,
// and requires that no other file is there.
func readTree(t testing.TB, dir string, size int) map[string][]int {
	found := map[string][]int{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		if entry.IsDir() || entry.Name() == probe || strings.HasSuffix(path, IndexSuffix) { // the removal of a probe may have failed
			return nil
		}
		parsed, ok := ParseName(entry.Name())
		require.True(t, ok && !parsed.Partial, path)
		group, err := filepath.Rel(dir, filepath.Dir(path))
		require.NoError(t, err)
		if group == "." {
			group = ""
		}
		found[group] = append(found[group], readFile(t, path, parsed.Format.Content, size)...)
		return nil
	}))
	return found
}

// countIn counts the ids of all groups.
func countIn(found map[string][]int) (n int) {
	for _, ids := range found {
		n += len(ids)
	}
	return n
}

// malformedValues gives n different values that would like to lead elsewhere, or to be
// taken for each other.
func malformedValues(random *rand.Rand, n int) []string {
	values := []string{
		"", ".", "..", "...", "../", "../..", "/", "//", "/etc/passwd", "a/b", "a/../b", `\`, `..\..`, "\x00", "a\x00", "a",
		"A", "a.", "a ", " a", "~", "%", "%2F", "%2f", "%5F", "_", "_unset", "_empty", "_int-1", "1", "con", "CON", "nul.txt",
		"profiles-20261121T102330.123Z-000001.otlp.pb.zst", "profiles-20261121T102330.123Z-000001.otlp.pb.zst.partial",
		strings.Repeat("a", 5000), strings.Repeat("a", 5001), strings.Repeat("../", 1700), strings.Repeat("/", 5000), "é", "e\u0301", "\xff", "\xc3",
	}
	pieces := []string{"..", "/", `\`, "\x00", "a", "A", ".", "%", "~", "_", "é", "\xff", " ", "2F", "con", "-", "\n", strings.Repeat("x", 70)}
	seen := map[string]bool{}
	for _, v := range values {
		seen[v] = true
	}
	for len(values) < n {
		var b strings.Builder
		for range 1 + random.IntN(8) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		if v := b.String(); !seen[v] {
			seen[v] = true
			values = append(values, v)
		}
	}
	return values[:n]
}

// TestMalformedGroupValues_E10: nothing is written outside, no two values share a directory,
// and planted links and files are not followed.
func TestMalformedGroupValues_E10(t *testing.T) {
	const size = 20
	n := profiletest.Rounds(t, 300, 10_000)
	values := malformedValues(rand.New(rand.NewPCG(profiletest.Seed(t), 0)), n)
	above := t.TempDir()
	dir := filepath.Join(above, "base", "profiles")
	outside := filepath.Join(above, "outside")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.Mkdir(outside, 0o700))
	// Planted: links out and across, a file.
	planted := map[string]bool{}
	for i, plant := range []func(path string) error{
		func(path string) error { return os.Symlink(outside, path) },
		func(path string) error { return os.Symlink("../../outside", path) },
		func(path string) error { return os.Symlink(GroupName(values[10]), path) },
		func(path string) error { return os.Symlink("nowhere", path) },
		func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
	} {
		name := "planted" + strconv.Itoa(i)
		require.NoError(t, plant(filepath.Join(dir, name)))
		planted[name] = true
	}
	s := openTestWriter(t, dir, Options{Format: allFormats[0], OpenDir: (&faults{noSync: true}).openDir, Levels: 1, MaxOpen: 20})
	directories, foldsCase := map[string]string{}, GroupName("A") != "A"
	for id, value := range values {
		name := GroupName(value)
		if other, taken := directories[strings.ToUpper(name)]; taken && (foldsCase || GroupName(other) == name) {
			t.Fatalf("%q and %q share %s", value, other, name)
		}
		directories[strings.ToUpper(name)] = value
		require.NoError(t, s.Append(plainRecord(OTLPProto, id, size, name)), "%q", value)
	}
	for name := range planted {
		require.Error(t, s.Append(plainRecord(OTLPProto, 0, size, name)), name)
	}
	require.NoError(t, s.Close())

	assert.Empty(t, list(t, outside))
	assert.Equal(t, []string{"base", "outside"}, list(t, above))
	assert.Equal(t, []string{"profiles"}, list(t, filepath.Dir(dir)))
	for name := range planted {
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	found := readTree(t, dir, size)
	profiletest.Account(t, fmt.Sprintf("%d malformed values, %d planted links and files", n, len(planted)), n, countIn(found), 0)
	require.Len(t, found, n)
	for id, value := range values {
		require.Equal(t, []int{id}, found[GroupName(value)], "%q", value)
	}
}

// TestManyGroups_E12: many goroutines write more groups than files may be open.
func TestManyGroups_E12(t *testing.T) {
	const size, writers = 20, 16
	groups, maxOpen := profiletest.Rounds(t, 150, 10_000), profiletest.Rounds(t, 10, 100)
	seed, dir, before := profiletest.Seed(t), t.TempDir(), descriptors(t)
	s := openTestWriter(t, dir, Options{
		Format: allFormats[2], Rotation: Rotation{MaxRecords: 5}, OpenDir: (&faults{noSync: true}).openDir, Levels: 2, MaxOpen: maxOpen,
	})
	want, most := map[string][]int{}, 0
	var mu sync.Mutex // of want
	stop := make(chan struct{})
	var ticking, writing sync.WaitGroup
	ticking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				s.Tick()
				s.Maintain()
				most = max(most, descriptors(t)-before)
			}
		}
	})
	for w := range writers {
		writing.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(w)))
			for id := w; id < 6*groups; id += writers {
				n := random.IntN(groups)
				group := []string{"a" + strconv.Itoa(n%10), GroupName("group " + strconv.Itoa(n))}
				assert.NoError(t, s.Append(plainRecord(OTLPProto, id, size, group...)))
				mu.Lock()
				want[filepath.Join(group...)] = append(want[filepath.Join(group...)], id)
				mu.Unlock()
			}
		})
	}
	writing.Wait()
	close(stop)
	ticking.Wait()
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Append(plainRecord(OTLPProto, 1, size, "a", "b")), ErrClosed)
	assert.LessOrEqual(t, most, 3*(maxOpen+writers+concurrentTicks)+4*writers+5, "three of each open file, and those of calls")
	assert.LessOrEqual(t, descriptors(t), before+1)
	got := readTree(t, dir, size)
	profiletest.Account(t, fmt.Sprintf("%d writers into %d groups for %d open files", writers, len(want), maxOpen), 6*groups, countIn(got), 0)
	for group := range want {
		assert.ElementsMatch(t, want[group], got[group], group)
	}
	assert.Len(t, got, len(want))
}

// descriptors gives how many this process has open.
func descriptors(t testing.TB) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("open descriptors cannot be counted here: %v", err)
	}
	return len(entries)
}

// TestRecoveryInGroups_E1: leftovers in groups are finished at start, and where the disk
// fails then, later.
func TestRecoveryInGroups_E1(t *testing.T) {
	const size = 30
	format := allFormats[2]
	torn := fileOf(t, format, 3, size)
	torn = torn[:len(torn)-1]
	for n := 1; ; n++ {
		dir := t.TempDir()
		for i, group := range []string{"", "a", "a/b", "a/b/c", "_unset/_int-1"} {
			path := filepath.Join(dir, group)
			require.NoError(t, os.MkdirAll(path, 0o700))
			name := Name{Sequence: uint64(i), Format: format, Partial: true}
			require.NoError(t, os.WriteFile(filepath.Join(path, name.String()), torn, 0o600))
		}
		f := faults{from: n, to: n + 1, noSync: true}
		clock := newClock()
		var repaired []string
		options := Options{
			Format: format, OpenDir: f.openDir, Now: clock.Now, Levels: 2, MaxOpen: 2,
			FileRecovered: func(r RecoveredFile) { repaired = append(repaired, filepath.Dir(r.Partial)) },
		}
		s, err := openWriter(dir, options)
		if err != nil {
			require.Positive(t, f.failed)
			s, err = openWriter(dir, options)
			require.NoError(t, err)
		}
		s.Tick()
		s.Maintain()
		require.NoError(t, s.Close())
		deep := filepath.Join(dir, "a/b/c")
		assert.Len(t, list(t, deep), 1, "deeper than our groups")
		require.NoError(t, os.RemoveAll(deep))
		require.Equal(t, map[string][]int{"": {1, 2}, "a": {1, 2}, "a/b": {1, 2}, "_unset/_int-1": {1, 2}}, readTree(t, dir, size), "call %d", n)
		if f.failed == 0 {
			require.Greater(t, n, 20)
			slices.Sort(repaired)
			assert.Equal(t, []string{dir, filepath.Join(dir, "_unset/_int-1"), filepath.Join(dir, "a"), filepath.Join(dir, "a/b")}, repaired)
			break
		}
	}
}

// TestFilesThatCannotBeClosedStay: a file that cannot get its name is not followed by others of its group, and keeps no other group
// from being written.
func TestFilesThatCannotBeClosedStay(t *testing.T) {
	const size = 10
	dir, broken := t.TempDir(), map[string]bool{"g0": true, "g1": true, "g2": true, "g3": true}
	var failures atomic.Int64 // groups are closed concurrently
	f := faults{before: func(c call) error {
		if c.op == "Rename" && broken[filepath.Dir(c.path)] {
			return errors.New("broken")
		}
		return nil
	}}
	s := openTestWriter(t, dir, Options{
		Format: allFormats[2], Rotation: Rotation{MaxRecords: 1}, Failed: func(error) { failures.Add(1) }, OpenDir: f.openDir, Levels: 1, MaxOpen: 2,
	})
	want := map[string][]int{}
	write := func(id, group int) error {
		name := "g" + strconv.Itoa(group)
		err := s.Append(plainRecord(OTLPProto, id, size, name))
		if err == nil {
			want[name] = append(want[name], id)
		}
		return err
	}
	for group := range 3 {
		require.NoError(t, write(group, group))
	}
	for id := range 10 {
		s.Tick()
		require.ErrorContains(t, write(10+id, 0), "broken")
	}
	assert.EqualValues(t, 3+10*3, failures.Load(), "those of the first records and of each Tick")
	require.NoError(t, write(3, 3))
	clear(broken)
	require.NoError(t, write(4, 0))
	require.NoError(t, s.Close())
	assert.Equal(t, want, readTree(t, dir, size))
}

// TestGroupsBeyondTheOpenFilesKeepTheirFiles_A10: descriptors are closed, not files. Whatever happens to a file meanwhile, nothing that was
// acknowledged is lost, and the group goes on in the file or in another one.
func TestGroupsBeyondTheOpenFilesKeepTheirFiles_A10(t *testing.T) {
	const size, groups, rounds = 30, 20, 5
	for name, meddle := range map[string]struct {
		with  func(t *testing.T, path string)
		files int // of each group
		lost  bool
	}{
		"nothing": {func(*testing.T, string) {}, 1, false},
		"recovered": {func(t *testing.T, path string) {
			require.NoError(t, os.Rename(path, strings.TrimSuffix(path, PartialSuffix)))
		}, 2, false},
		"removed": {func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }, 1, true},
		"appended": {func(t *testing.T, path string) {
			file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = file.WriteString("x")
			require.NoError(t, errors.Join(err, file.Close()))
		}, 2, false},
		"locked": {func(t *testing.T, path string) {
			dir, err := OpenDir(filepath.Dir(path))
			require.NoError(t, err)
			file, err := dir.Open(filepath.Base(path))
			require.NoError(t, err)
			require.NoError(t, file.Lock())
			t.Cleanup(func() { _ = errors.Join(file.Close(), dir.Close()) })
		}, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, sync := range []Sync{SyncNone, SyncInterval, SyncRecord} {
				dir, clock := t.TempDir(), newClock()
				s := openTestWriter(t, dir, Options{
					Format: allFormats[2], Levels: 1, MaxOpen: 3, Sync: sync, SyncInterval: 1, Now: clock.Now, OpenDir: (&faults{noSync: true}).openDir, Failed: func(error) {},
				})
				want, id := map[string][]int{}, 0
				write := func() {
					for g := range groups {
						group := fmt.Sprint("g", g)
						require.NoError(t, s.Append(plainRecord(OTLPProto, id, size, group)))
						want[group] = append(want[group], id)
						id++
					}
					s.Tick()
				}
				write()
				for g := range groups - 3 { // those that are parked
					group := fmt.Sprint("g", g)
					path := filepath.Join(dir, group, list(t, filepath.Join(dir, group))[0])
					meddle.with(t, path)
					if meddle.lost {
						want[group] = nil
					}
				}
				for range rounds {
					write()
				}
				for g := range groups - 3 {
					require.LessOrEqual(t, len(list(t, filepath.Join(dir, fmt.Sprint("g", g)))), meddle.files)
				}
				require.NoError(t, s.Close())
				if name == "locked" {
					continue // what is locked stays, and is recovered by the next process
				}
				if name == "appended" {
					w := openTestWriter(t, dir, Options{Format: allFormats[2], Levels: 1, Failed: func(error) {}})
					require.NoError(t, w.Close())
				}
				require.Equal(t, want, readTree(t, dir, size))
			}
		})
	}
}

// TestParkedFilesAreNotRecoveredByTheirWriter: they have no lock while another incomplete file could not be recovered.
func TestParkedFilesAreNotRecoveredByTheirWriter(t *testing.T) {
	const size = 30
	dir, format := t.TempDir(), allFormats[2]
	left := Name{Sequence: 7, Format: format, Partial: true}
	require.NoError(t, os.WriteFile(filepath.Join(dir, left.String()), fileOf(t, format, 3, size), 0o600))
	failing := true
	f := faults{before: func(c call) error {
		if failing && c.op == "Open" && c.path == left.String() {
			return errors.New("broken")
		}
		return nil
	}}
	recovered := 0
	s := openTestWriter(t, dir, Options{
		Format: format, Levels: 1, MaxOpen: 1, OpenDir: f.openDir, Failed: func(error) {}, FileRecovered: func(RecoveredFile) { recovered++ },
	})
	for id := range 10 {
		require.NoError(t, s.Append(plainRecord(OTLPProto, id, size, "g"+strconv.Itoa(id%5))))
		s.Maintain()
	}
	assert.Zero(t, recovered)
	failing = false
	s.Maintain()
	assert.Equal(t, 1, recovered)
	require.NoError(t, s.Close())
	got := readTree(t, dir, size)
	assert.Equal(t, []int{0, 5}, got["g0"])
	assert.Len(t, list(t, filepath.Join(dir, "g0")), 1)
	assert.Equal(t, 13, countIn(got))
}

// TestIdleGroupsAreForgotten: a Writer of groups that come and go needs bounded memory.
func TestIdleGroupsAreForgotten(t *testing.T) {
	s := openTestWriter(t, t.TempDir(), Options{Format: allFormats[2], Levels: 1, MaxOpen: 2, Rotation: Rotation{MaxRecords: 1}})
	for id := range 50 {
		require.NoError(t, s.Append(plainRecord(OTLPProto, id, 10, "g"+strconv.Itoa(id))))
		s.Maintain()
	}
	assert.LessOrEqual(t, len(s.groups), 2)
	assert.LessOrEqual(t, s.open.Len(), 2)
}

// TestNoGroupWaitsForTheDiskOfAnother_A10: one group's sync hangs. Others are written, opened and parked meanwhile.
func TestNoGroupWaitsForTheDiskOfAnother_A10(t *testing.T) {
	const size = 30
	hanging, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f := faults{}
	s := openTestWriter(t, t.TempDir(), Options{
		Format: allFormats[2], Levels: 1, MaxOpen: 2, Sync: SyncRecord,
		OpenDir: func(path string, group ...string) (Dir, error) {
			dir, err := f.openDir(path, group...)
			if len(group) == 1 && group[0] == "slow" {
				return hangingDir{dir, func() { once.Do(func() { close(hanging); <-release }) }}, err
			}
			return dir, err
		},
	})
	var writing sync.WaitGroup
	writing.Go(func() { assert.NoError(t, s.Append(plainRecord(OTLPProto, 1, size, "slow"))) })
	<-hanging
	for id := range 10 {
		require.NoError(t, s.Append(plainRecord(OTLPProto, id, size, "g"+strconv.Itoa(id%5))))
	}
	close(release)
	writing.Wait()
	require.NoError(t, s.Close())
}

// hangingDir calls before each sync of its entries.
type hangingDir struct {
	Dir
	before func()
}

func (d hangingDir) Sync() error {
	d.before()
	return d.Dir.Sync()
}
