// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// padded is newRecord with an original payload of so many random bytes.
func padded(t testing.TB, random *rand.Rand, id, size int) store.Record {
	pd := newPayload("checkout", id, begin, begin)
	padding := make([]byte, size)
	for i := range padding {
		padding[i] = byte(random.Uint32())
	}
	pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).OriginalPayload().FromRaw(padding)
	return recordOf(t, segment.Proto, "checkout", pd)
}

// TestFullDisk_E2: a disk becomes full again and again, and somebody takes the closed files away. What was acknowledged is there, and writing
// resumes.
func TestFullDisk_E2(t *testing.T) {
	cycles := profiletest.Rounds(t, 5, 100)
	random := profiletest.NewRand(1)
	for _, disk := range []int{64 << 10, 1 << 20} {
		for _, sync := range []store.Sync{store.SyncNone, store.SyncRecord} {
			t.Run(fmt.Sprintf("%d KiB, sync %d", disk>>10, sync), func(t *testing.T) {
				mounted := t.TempDir()
				if err := unix.Mount("tmpfs", mounted, "tmpfs", 0, "size="+strconv.Itoa(disk)); err != nil {
					t.Skipf("not run: tmpfs cannot be mounted here: %v", err)
				}
				defer func() { require.NoError(t, unix.Unmount(mounted, 0)) }()
				dir, want, got, full, id := filepath.Join(mounted, "profiles"), map[int]int{}, map[int]int{}, 0, 0
				w, err := store.OpenWriter(store.Options{
					Directory: dir, Format: segment.Proto, Sync: sync, MaxOpen: 1, Rotation: store.Rotation{MaxSize: int64(disk / 4)},
					Failed: func(err error) { assert.ErrorIs(t, err, syscall.ENOSPC) },
				})
				require.NoError(t, err)
				add := func() error {
					id++
					err := w.Append(padded(t, random, id, disk/40))
					if err == nil {
						want[id] = 1
					}
					return err
				}
				take := func() {
					for _, name := range closedIn(t, dir) {
						for _, data := range profiletest.ReadRecords(t, filepath.Join(dir, name)) {
							countIDs(t, got, segment.Proto, data)
						}
						require.NoError(t, os.Remove(filepath.Join(dir, name)))
					}
				}
				for range cycles {
					for range 200 {
						if err := add(); err != nil {
							require.ErrorIs(t, err, syscall.ENOSPC)
							full++
							break
						}
					}
					take()
					require.NoError(t, add(), "there is space")
				}
				require.NoError(t, w.Close())
				take()
				require.Equal(t, want, got)
				require.Equal(t, cycles, full)
				profiletest.Account(t, fmt.Sprintf("%d times a full disk of %d KiB", full, disk>>10), len(want), len(got), 0)
			})
		}
	}
}

// TestUmask_E11: nobody else reads the files.
func TestUmask_E11(t *testing.T) {
	d := newDirectory(t)
	defer unix.Umask(unix.Umask(0))
	d.dir = filepath.Join(d.dir, "a", "b")
	d.write(1)
	w := d.open()
	require.NoError(t, w.Append(newRecord(t, d.format, "checkout", 2, d.now, d.now)))
	files, directories := 0, 0
	require.NoError(t, filepath.WalkDir(filepath.Dir(d.dir), func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := os.Stat(path)
		require.NoError(t, err)
		if entry.IsDir() {
			directories++
			assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), path)
		} else {
			files++
			assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), path)
		}
		return nil
	}))
	require.NoError(t, w.Close())
	require.GreaterOrEqual(t, files, 2)
	require.GreaterOrEqual(t, directories, 7)
	profiletest.Injected(t, fmt.Sprintf("umask 0 for %d files and %d directories", files, directories))
}

func command(t *testing.T, name string, args ...string) error {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("not run: %s is not installed", name)
	}
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// mountImage mounts an image of a file system that writes to the disk only what is synced, for a long time.
func mountImage(t *testing.T, file string) (mounted string, err error) {
	t.Helper()
	mounted = t.TempDir()
	if err := command(t, "mount", "-o", "loop,commit=1000", file, mounted); err != nil {
		return "", err
	}
	t.Cleanup(func() { _ = unix.Unmount(mounted, unix.MNT_DETACH) }) // if it is still mounted
	return mounted, nil
}

// TestPowerLoss_E4: the power fails at any call of a writer and a compactor. What was synced is there once, and no closed file is damaged.
func TestPowerLoss_E4(t *testing.T) {
	random := profiletest.NewRand(profiletest.Seed(t))
	for round := range profiletest.Rounds(t, 4, 100) {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			file := profiletest.WriteFile(t, "disk", nil)
			require.NoError(t, os.Truncate(file, 16<<20))
			require.NoError(t, command(t, "mkfs.ext4", "-q", "-F", file))
			mounted, err := mountImage(t, file)
			if err != nil {
				t.Skipf("not run: an image cannot be mounted here: %v", err)
			}
			calls, at, copied := 0, 50+random.IntN(2000), file+"-copy"
			d := &directory{t: t, dir: filepath.Join(mounted, "a", "profiles"), now: begin, format: segment.Proto, process: &process{syncs: true}}
			d.process.before = func(string) error {
				if calls++; calls < at {
					return nil
				}
				data, err := os.ReadFile(file)
				assert.NoError(t, err)
				assert.NoError(t, os.WriteFile(copied, data, 0o600))
				return errKilled
			}
			var acknowledged []int
			w, err := store.OpenWriter(store.Options{
				Directory: d.dir, Format: d.format, Sync: store.SyncRecord, MaxOpen: 2, Rotation: store.Rotation{MaxRecords: 7},
				OpenDir: d.process.openDir, Now: func() time.Time { return d.now }, Failed: func(error) {},
			})
			compactor := d.compactor()
			for id := 1; err == nil && !d.process.killed; id++ {
				if err = w.Append(newRecord(t, d.format, "checkout", id, d.now, d.now)); err == nil {
					acknowledged = append(acknowledged, id)
				}
				d.now = d.now.Add(3 * time.Minute)
				w.Tick()
				w.CloseDue()
				if id%10 == 0 {
					_ = compactor.Run(t.Context())
				}
			}
			require.True(t, d.process.killed)
			if w != nil {
				_ = w.Close()
			}
			require.NoError(t, unix.Unmount(mounted, unix.MNT_DETACH))

			after, err := mountImage(t, copied)
			require.NoError(t, err)
			d = &directory{t: t, dir: filepath.Join(after, "a", "profiles"), now: d.now, format: d.format, process: &process{}}
			if exists(d.dir) {
				for _, name := range closedIn(t, d.dir) { // before any recovery
					f, _ := layout.ParsePath(name)
					require.NotEmpty(t, profiletest.ReadRecords(t, filepath.Join(d.dir, name)), f.Path)
				}
			}
			require.NoError(t, d.open().Close())
			for range 2 {
				got := d.counts()
				for _, id := range acknowledged {
					require.Equal(t, 1, got[id], "%d after %d calls", id, at)
				}
				require.LessOrEqual(t, len(got), len(acknowledged)+1)
				d.compact()
			}
			profiletest.Account(t, "1 losses of power", len(acknowledged), len(acknowledged), 0)
			require.NoError(t, unix.Unmount(after, 0))
		})
	}
}
