// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMaxGroups at the limit, one below and one above, and across restarts.
func TestMaxGroups(t *testing.T) {
	const size, limit = 20, 3
	for levels := 1; levels <= 2; levels++ {
		dir := t.TempDir()
		var others []string
		options := Options{
			Format: allFormats[0], Levels: levels, MaxOpen: 2, MaxGroups: limit, Now: newClock().Now,
			RecordWritten: func(r Record, _ int64, other bool) {
				if other {
					others = append(others, r.Group[0])
				}
			},
		}
		want, id := map[string][]int{}, 0
		write := func(s *Writer, group, directory string) {
			names := []string{group, group + "x"}[:levels]
			if directory != Other {
				directory = filepath.Join(names...)
			}
			require.NoError(t, s.Append(plainRecord(OTLPProto, id, size, names...)))
			want[directory] = append(want[directory], id)
			id++
		}
		s := openTestWriter(t, dir, options)
		for _, group := range []string{"a", "b", "c", "a"} {
			write(s, group, group)
		}
		require.Empty(t, others)
		for _, group := range []string{"d", "e", "d", "b"} {
			directory := Other
			if group == "b" {
				directory = group
			}
			write(s, group, directory)
		}
		require.Equal(t, []string{"d", "e", "d"}, others)
		require.NoError(t, s.Close())
		require.Len(t, list(t, dir), limit+1)

		s = openTestWriter(t, dir, options)
		write(s, "c", "c")
		write(s, "f", Other)
		write(s, "d", Other)
		require.NoError(t, s.Close())

		// Another process makes a fourth group, and one makes room for a fifth.
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Join([]string{"d", "dx"}[:levels]...)), 0o700))
		s = openTestWriter(t, dir, options)
		write(s, "d", "d")
		write(s, "f", Other)
		for _, group := range []string{"a", "b", "d"} {
			closeFiles(t, s)
			require.NoError(t, os.RemoveAll(filepath.Join(dir, group)))
			delete(want, filepath.Join([]string{group, group + "x"}[:levels]...))
		}
		s.Maintain()
		s.Maintain() // d was used since the count at the start
		write(s, "f", "f")
		write(s, "g", "g")
		write(s, "h", Other)
		require.NoError(t, s.Close())
		assert.Equal(t, want, readTree(t, dir, size))
	}
}

// TestAdmittedGroupsKeepTheirPlace: one whose directory could not be created yet, or not be counted because another cannot be opened.
func TestAdmittedGroupsKeepTheirPlace(t *testing.T) {
	const size = 20
	for name, fails := range map[string]func(c call) bool{
		"not created": func(c call) bool { return c.op == "OpenDir" && c.path == "a/a" },
		"not counted": func(c call) bool { return c.op == "OpenChild" },
	} {
		t.Run(name, func(t *testing.T) {
			dir, failing := t.TempDir(), name == "not created"
			f := faults{before: func(c call) error {
				if failing && fails(c) {
					return syscall.EIO
				}
				return nil
			}}
			s := openTestWriter(t, dir, Options{
				Format: allFormats[0], Levels: 2, MaxOpen: 2, MaxGroups: 1,
				OpenDir: f.openDir, Failed: func(err error) { require.ErrorIs(t, err, syscall.EIO) },
			})
			if failing {
				require.ErrorIs(t, s.Append(plainRecord(OTLPProto, 1, size, "a", "a")), syscall.EIO)
			} else {
				require.NoError(t, s.Append(plainRecord(OTLPProto, 1, size, "a", "a")))
				s.Maintain() // what was used since is not counted in vain
				failing = true
			}
			s.Maintain()
			require.NoError(t, s.Append(plainRecord(OTLPProto, 2, size, "b", "b")))
			failing = false
			require.NoError(t, s.Append(plainRecord(OTLPProto, 3, size, "a", "a")))
			require.NoError(t, s.Close())
			got := readTree(t, dir, size)
			assert.Equal(t, []int{2}, got[Other])
			assert.Contains(t, got["a/a"], 3)
		})
	}
}

// TestGroupsCountDespiteOtherErrors: a file that cannot be recovered, and the directory of a group that cannot
// be opened or listed, are no reason to admit more groups after a restart.
func TestGroupsCountDespiteOtherErrors(t *testing.T) {
	const size = 20
	for _, op := range []string{"Open", "Names", "OpenChild"} {
		t.Run(op, func(t *testing.T) {
			dir, retention := t.TempDir(), Retention{MaxFiles: 100}
			w := openTestWriter(t, dir, Options{Format: allFormats[0], Levels: 1, MaxOpen: 2, MaxGroups: 1, Retention: retention})
			require.NoError(t, w.Append(plainRecord(OTLPProto, 1, size, "a")))
			require.NoError(t, w.Close())
			left := Name{Time: time.Unix(1, 0), Sequence: 1, Format: allFormats[0], Partial: true}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "a", left.String()), []byte{1}, 0o600))

			f := faults{before: func(c call) error {
				if c.op == op && c.path != "" {
					return syscall.EIO
				}
				return nil
			}}
			failures := 0
			w = openTestWriter(t, dir, Options{
				Format: allFormats[0], Levels: 1, MaxOpen: 2, MaxGroups: 1, Retention: retention, OpenDir: f.openDir,
				Failed: func(err error) {
					require.ErrorIs(t, err, syscall.EIO)
					failures++
				},
			})
			w.Maintain()
			require.Equal(t, 2, failures)
			require.NoError(t, w.Append(plainRecord(OTLPProto, 2, size, "b")))
			require.NoError(t, w.Close())
			assert.FileExists(t, filepath.Join(dir, "a", left.String()))
			assert.DirExists(t, filepath.Join(dir, Other))
			assert.NoDirExists(t, filepath.Join(dir, "b"))
		})
	}
}
