// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package recordfile

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// mountTmpfs mounts one of the given size, and skips the test where that is not allowed.
func mountTmpfs(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+strconv.Itoa(size)); err != nil {
		t.Skipf("not run: tmpfs cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(dir, 0)) })
	return dir
}

// TestFullDisk_E2 fills a small disk and frees it, again and again. What is readable
// is what was acknowledged, and the first record after there is space is written.
func TestFullDisk_E2(t *testing.T) {
	cycles := profiletest.Rounds(t, 2, 100)
	for _, disk := range []int{64 << 10, 1 << 20} {
		for i, format := range []Format{allFormats[0], allFormats[2], allFormats[4], allFormats[5]} {
			for _, syncMode := range []Sync{SyncNone, SyncRecord} {
				t.Run(fmt.Sprintf("%d KiB %s sync %d", disk>>10, formatName(format), syncMode), func(t *testing.T) {
					size := disk / 40 * (1 + i%2)
					dir := filepath.Join(mountTmpfs(t, disk), "profiles")
					full := 0
					w := openTestWriter(t, dir, Options{
						Format: format, Sync: syncMode, Rotation: Rotation{MaxSize: int64(disk / 4)},
						Failed: func(err error) { assert.ErrorIs(t, err, syscall.ENOSPC) },
					})
					var want, got []int
					id := 0
					add := func() error {
						id++
						err := w.Append(plainRecord(format.Content, id, size))
						if err == nil {
							want = append(want, id)
						}
						return err
					}
					for range cycles {
						for range 200 {
							if err := add(); err != nil {
								require.ErrorIs(t, err, syscall.ENOSPC)
								full++
								for range 3 {
									require.ErrorIs(t, add(), syscall.ENOSPC, "it stays full")
								}
								break
							}
						}
						// Someone takes the finished files away.
						ids := readAll(t, dir, size)
						require.NotEmpty(t, ids)
						got = append(got, ids...)
						for _, name := range list(t, dir) {
							if parsed, _ := ParseName(name); !parsed.Partial {
								require.NoError(t, os.Remove(filepath.Join(dir, name)))
							}
						}
						require.NoError(t, add(), "there is space")
					}
					require.NoError(t, w.Close())
					got = append(got, readAll(t, dir, size)...)
					assert.ElementsMatch(t, want, got)
					assert.Equal(t, cycles, full)
					profiletest.Account(t, fmt.Sprintf("%d times a full disk of %d KiB", full, disk>>10), len(want), len(got), 0)
				})
			}
		}
	}
}

// TestReadOnlyMount_E6: the disk is remounted read-only for a while.
func TestReadOnlyMount_E6(t *testing.T) {
	const size = 50
	forEachFormat(t, func(t *testing.T, format Format) {
		dir := mountTmpfs(t, 1<<20)
		remount := func(flags uintptr) {
			require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|flags, "size=1048576"))
		}
		w := openTestWriter(t, filepath.Join(dir, "profiles"), Options{Format: format, Rotation: Rotation{MaxRecords: 3}, Failed: func(error) {}})
		var want []int
		remounts := 0
		for id := range 30 {
			if id%5 == 4 {
				// A mount with a file open to write cannot be remounted.
				closeFiles(t, w)
				remount(unix.MS_RDONLY)
				require.ErrorIs(t, w.Append(plainRecord(format.Content, 100+id, size)), syscall.EROFS)
				w.Tick()
				remount(0)
				remounts++
			}
			require.NoError(t, w.Append(plainRecord(format.Content, id, size)), "it can be written to")
			want = append(want, id)
		}
		require.NoError(t, w.Close())
		remount(unix.MS_RDONLY)
		_, err := openWriter(filepath.Join(dir, "profiles"), Options{Format: format})
		require.ErrorIs(t, err, syscall.EROFS, "it would lose all that it acknowledges")
		remount(0)
		got := readAll(t, filepath.Join(dir, "profiles"), size)
		assert.Equal(t, want, got)
		profiletest.Account(t, fmt.Sprintf("%d times read-only", remounts), len(want), len(got), 0)
	})
}

// command runs a tool, and skips the test if it is missing.
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

// mountImage mounts a file with an ext4 in it.
func mountImage(t *testing.T, file string) (mounted string, err error) {
	t.Helper()
	mounted = t.TempDir()
	if err := command(t, "mount", "-o", "loop,commit=1000", file, mounted); err != nil {
		return "", err
	}
	t.Cleanup(func() { _ = unix.Unmount(mounted, unix.MNT_DETACH) }) // if it is still mounted
	return mounted, nil
}

// powerLoss copies an image as it is, before one of the calls, without what the
// system has not put on the disk.
type powerLoss struct {
	faults
	at            int
	image, copied string
	err           error
	lost          bool
}

var errPower = errors.New("the power is lost")

func (p *powerLoss) before(call) error {
	p.calls++
	if p.calls == p.at {
		var data []byte
		if data, p.err = os.ReadFile(p.image); p.err == nil {
			p.err = os.WriteFile(p.copied, data, 0o600)
		}
		p.lost = true
	}
	if p.lost {
		return errPower
	}
	return nil
}

// TestPowerLoss_E4: the power is lost before a random call of the file system. With
// SyncRecord nothing that was acknowledged is lost; in every mode no finished file is
// empty or damaged.
func TestPowerLoss_E4(t *testing.T) {
	const size = 3000
	seed := profiletest.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range profiletest.Rounds(t, 4, 100) {
		format := allFormats[random.IntN(len(allFormats))]
		syncMode := []Sync{SyncRecord, SyncRecord, SyncInterval, SyncNone}[round%4]
		t.Run(fmt.Sprintf("%d %s sync %d", round, formatName(format), syncMode), func(t *testing.T) {
			file := profiletest.WriteFile(t, "disk", nil)
			require.NoError(t, os.Truncate(file, 16<<20))
			require.NoError(t, command(t, "mkfs.ext4", "-q", "-F", file))
			mounted, err := mountImage(t, file)
			if err != nil {
				t.Skipf("not run: an image cannot be mounted here: %v", err)
			}
			power := &powerLoss{image: file, copied: file + "-copy", at: 20 + random.IntN(400)}
			power.faults.before = power.before
			options := Options{
				Format: format, Sync: syncMode, SyncInterval: 1, Rotation: Rotation{MaxRecords: 7},
				OpenDir: power.openDir, Failed: func(error) {},
			}
			w, err := openWriter(filepath.Join(mounted, "a", "profiles"), options)
			var acknowledged []int
			for id := 1; err == nil && !power.lost; id++ {
				if err = w.Append(plainRecord(format.Content, id, size)); err == nil {
					acknowledged = append(acknowledged, id)
				}
				if id%10 == 0 {
					w.Tick()
				}
			}
			require.NoError(t, power.err)
			require.True(t, power.lost)
			_ = w.Close()
			require.NoError(t, unix.Unmount(mounted, unix.MNT_DETACH))

			after, err := mountImage(t, power.copied)
			require.NoError(t, err)
			dir := filepath.Join(after, "a", "profiles")
			if _, err := os.Stat(dir); err == nil {
				readAll(t, dir, size) // before any recovery: no finished file is empty or damaged
			}
			require.NoError(t, openTestWriter(t, dir, Options{Format: format}).Close())
			got := readAll(t, dir, size)
			if syncMode == SyncRecord {
				readable := 0
				for _, id := range acknowledged {
					require.True(t, slices.Contains(got, id), "%d is lost", id)
					readable++
				}
				profiletest.Account(t, "1 losses of power with sync: record", len(acknowledged), readable, 0)
			} else {
				profiletest.Injected(t, "1 losses of power with less sync")
			}
			require.NoError(t, unix.Unmount(after, 0))
		})
	}
}
