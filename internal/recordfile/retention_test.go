// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRetentionPolicy(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	// Five files of 10 bytes, begun 5, 4, 3, 2 and 1 minutes ago.
	files := func() []storedFile {
		var all []storedFile
		for i := range 5 {
			name := Name{Time: now.Add(time.Duration(i-5) * time.Minute), Sequence: uint64(9 - i), Format: allFormats[0]}
			all = append(all, storedFile{group: strconv.Itoa(i % 2), name: name, size: 10})
		}
		all[0], all[3] = all[3], all[0]
		return all
	}
	for name, tt := range map[string]struct {
		retention Retention
		removed   int
	}{
		"none":                     {Retention{}, 0},
		"files":                    {Retention{MaxFiles: 2}, 3},
		"as many files as allowed": {Retention{MaxFiles: 5}, 0},
		"size":                     {Retention{MaxTotalSize: 30}, 2},
		"size, not quite":          {Retention{MaxTotalSize: 29}, 3},
		"all are too large":        {Retention{MaxTotalSize: 9}, 5},
		"age":                      {Retention{MaxAge: 3 * time.Minute}, 2},
		"age, all":                 {Retention{MaxAge: time.Second}, 5},
		"the strictest counts":     {Retention{MaxFiles: 4, MaxAge: 4 * time.Minute, MaxTotalSize: 20}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			got := tt.retention.surplus(files(), now, nil)
			require.Len(t, got, tt.removed)
			for i, f := range got {
				assert.Equal(t, now.Add(time.Duration(i-5)*time.Minute), f.name.Time, "the oldest first")
			}
		})
	}
	assert.Empty(t, Retention{MaxFiles: 1}.surplus(nil, now, nil))
	oldest := files()[3]
	keepOldest := func(name string) bool { return name == oldest.group+"/"+oldest.name.String() }
	kept := Retention{MaxAge: 2 * time.Minute}.surplus(files(), now, keepOldest)
	require.Len(t, kept, 2, "the others that are too old")
	assert.Equal(t, now.Add(-4*time.Minute), kept[0].name.Time)
	assert.Len(t, Retention{MaxAge: 2 * time.Minute, MaxFiles: 4}.surplus(files(), now, keepOldest), 3, "one more, as a limit of files holds for all")
	assert.Len(t, Retention{MaxTotalSize: 30}.surplus(files(), now, keepOldest), 2)
	compacted := []storedFile{{name: Name{Time: now.Add(-2 * time.Hour), Span: time.Hour}}}
	assert.Empty(t, Retention{MaxAge: time.Hour}.surplus(compacted, now, nil), "it is as old as the end of its span")
	assert.Len(t, Retention{MaxAge: time.Hour}.surplus(compacted, now.Add(1), nil), 1)
}

// TestRetention: over all groups, and nothing but finished files of ours is removed.
func TestRetention(t *testing.T) {
	const size = 100
	for _, levels := range []int{0, 1} {
		t.Run(strconv.Itoa(levels), func(t *testing.T) {
			dir := t.TempDir()
			clock := newClock()
			var removed []string
			s := openTestWriter(t, dir, Options{Format: allFormats[2], Now: clock.Now, Rotation: Rotation{MaxRecords: 1},
				Levels: levels, MaxOpen: 10, Retention: Retention{MaxFiles: 3}, FileRemoved: func(path string, size int64) {
					assert.Positive(t, size)
					removed = append(removed, path)
				}})
			group := func(id int) []string { return []string{"g" + strconv.Itoa(id)}[:levels] }
			bystanders := []string{"notes.txt", "profiles-20200101T000000.000Z-000001.otlp.pb.zst.partial~"}
			for _, name := range bystanders {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
			}
			require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
			archive := filepath.Join(dir, "g0", "archive")
			require.NoError(t, os.MkdirAll(archive, 0o700))
			old := Name{Sequence: 1, Format: allFormats[2]}.String()
			require.NoError(t, os.WriteFile(filepath.Join(archive, old), []byte("x"), 0o600))
			// Another Writer is writing an old file.
			other := openTestWriter(t, filepath.Join(append([]string{dir}, group(0)...)...), Options{Format: allFormats[2], Now: clock.Now})
			require.NoError(t, other.Append(plainRecord(OTLPProto, 100, size)))

			for id := range 6 {
				clock.step(time.Second)
				require.NoError(t, s.Append(plainRecord(OTLPProto, id, size, group(id)...)))
			}
			s.Tick()
			s.Maintain()
			require.Len(t, removed, 3)
			assert.Equal(t, filepath.Join(append([]string{dir}, group(0)...)...), filepath.Dir(removed[0]))
			for _, name := range bystanders {
				assert.FileExists(t, filepath.Join(dir, name))
			}
			assert.FileExists(t, filepath.Join(archive, old), "deeper than our groups")
			assert.DirExists(t, filepath.Join(dir, "empty"), "nothing of ours was in it")
			require.NoError(t, os.Remove(filepath.Join(dir, "empty")))
			if levels == 1 {
				assert.NoDirExists(t, filepath.Join(dir, "g1"), "empty")
			}
			require.NoError(t, os.RemoveAll(archive))
			for _, name := range bystanders {
				require.NoError(t, os.Remove(filepath.Join(dir, name)))
			}
			// A group whose directory was removed can be written to again.
			require.NoError(t, s.Append(plainRecord(OTLPProto, 7, size, group(1)...)))
			require.NoError(t, s.Close())
			require.Len(t, removed, 3, "not at the end, when a reader could not notice it")
			require.NoError(t, other.Close())
			assert.Equal(t, 5, countIn(readTree(t, dir, size)), "and the other Writer's")
		})
	}
}

// TestRetentionPassesOverWhatIsStuck, wherever that is, and tries it again though no
// other file is finished.
func TestRetentionPassesOverWhatIsStuck(t *testing.T) {
	const size = 10
	for _, of := range []string{"", "g0", "g0/h"} {
		t.Run(of, func(t *testing.T) {
			dir := t.TempDir()
			stuck := map[string]bool{}
			for i, group := range []string{"", "g0", "g0/h", "g0/i", "g1/h"} {
				require.NoError(t, os.MkdirAll(filepath.Join(dir, group), 0o700))
				name := Name{Sequence: uint64(i + 1), Format: allFormats[2]}.String()
				require.NoError(t, os.WriteFile(filepath.Join(dir, group, name), fileOf(t, allFormats[2], 1, size), 0o600))
				if group == of {
					stuck[name] = true
				}
			}
			f := faults{before: func(c call) error {
				if c.op == "Remove" && stuck[filepath.Base(c.path)] {
					return syscall.EPERM
				}
				return nil
			}}
			var failures []error
			s := openTestWriter(t, dir, Options{
				Format: allFormats[2], Failed: func(err error) { failures = append(failures, err) }, OpenDir: f.openDir,
				Levels: 2, MaxOpen: 1, Retention: Retention{MaxTotalSize: 1},
			})
			s.Maintain()
			require.Len(t, failures, 1)
			require.ErrorIs(t, failures[0], syscall.EPERM)
			assert.Equal(t, map[string][]int{of: {1}}, readTree(t, dir, size))
			assert.NoDirExists(t, filepath.Join(dir, "g1"))
			clear(stuck)
			s.Maintain()
			assert.Empty(t, list(t, dir))
			require.Len(t, failures, 1)
		})
	}
}
