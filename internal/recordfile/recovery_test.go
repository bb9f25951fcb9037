// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestRecoveryAfterCrash cuts a file behind each of its bytes, as a crash may, and
// requires that all records before the cut are kept.
func TestRecoveryAfterCrash(t *testing.T) {
	const size = 60
	forEachFormat(t, func(t *testing.T, format Format) {
		t.Parallel()
		whole, ends := fileWithEnds(t, format, 4, size)
		dir := t.TempDir()
		var repaired []RecoveredFile
		options := Options{Format: format, FileRecovered: func(r RecoveredFile) { repaired = append(repaired, r) }}
		for cut := range len(whole) + 1 {
			name := Name{Time: time.Unix(int64(cut), 0).UTC(), Sequence: 7, Format: format, Partial: true}
			require.NoError(t, os.WriteFile(filepath.Join(dir, name.String()), whole[:cut], 0o600))
		}
		require.NoError(t, openTestWriter(t, dir, options).Close())

		require.Len(t, repaired, len(whole)+1)
		for cut := range len(whole) + 1 {
			want, end := []int{}, 0
			for i := range ends {
				if ends[i] <= cut {
					want, end = append(want, i+1), ends[i]
				}
			}
			name := Name{Time: time.Unix(int64(cut), 0).UTC(), Sequence: 7, Format: format}
			path := filepath.Join(dir, name.String())
			if len(want) == 0 {
				assert.NoFileExists(t, path)
				assert.Equal(t, RecoveredFile{Partial: repaired[cut].Partial, Truncated: int64(cut)}, repaired[cut])
			} else {
				require.Equal(t, want, readFile(t, path, format.Content, size))
				assert.Equal(t, RecoveredFile{
					Partial: repaired[cut].Partial, ClosedFile: ClosedFile{Path: path, Records: len(want), Size: int64(end)},
					Truncated: int64(cut - end),
				}, repaired[cut])
			}
			assert.NoFileExists(t, repaired[cut].Partial)
		}
	})
}

// TestRecoveryOfDamagedFiles: files that are compressed or have lines keep the records after the
// damage, others are cut there.
func TestRecoveryOfDamagedFiles(t *testing.T) {
	const size = 60
	forEachFormat(t, func(t *testing.T, format Format) {
		data, ends := fileWithEnds(t, format, 4, size)
		data[ends[0]] ^= 0x7e // the first byte of the second record
		dir := t.TempDir()
		name := Name{Sequence: 1, Format: format, Partial: true}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name.String()), append(data, data[:10]...), 0o600))
		var recovered []RecoveredFile
		options := Options{Format: format, FileRecovered: func(r RecoveredFile) { recovered = append(recovered, r) }}
		require.NoError(t, openTestWriter(t, dir, options).Close())
		require.Len(t, recovered, 1)
		records, end := 3, len(data)
		if !separable(format) {
			records, end = 1, ends[0]
		}
		assert.Equal(t, records, recovered[0].Records)
		assert.Equal(t, int64(len(data)+10-end), recovered[0].Truncated)
		kept, err := os.ReadFile(recovered[0].Path)
		require.NoError(t, err)
		assert.Equal(t, data[:end], kept)
	})
}

func TestRecoveryTouchesNothingElse(t *testing.T) {
	const size = 30
	dir := t.TempDir()
	format := allFormats[0]
	data := fileOf(t, format, 2, size)
	outside := profiletest.WriteFile(t, "outside", data[:len(data)-1])

	ours := Name{Sequence: 1, Format: format}
	others := []string{
		"notes.txt", "notes.partial", "profiles.otlp.pb.partial", ours.String(),
		"profiles-20261301T000000.000Z-000001.otlp.pb.partial",  // no such month
		"profiles-20260101T000000.000Z-000001.otlp.pb.partial~", // an editor's
	}
	for _, name := range others {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data[:len(data)-1], 0o600))
	}
	link := Name{Sequence: 2, Format: format, Partial: true}.String()
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, link)))
	folder := Name{Sequence: 3, Format: format, Partial: true}.String()
	require.NoError(t, os.Mkdir(filepath.Join(dir, folder), 0o700))

	w := openTestWriter(t, dir, Options{Format: format, FileRecovered: func(r RecoveredFile) { t.Errorf("repaired %+v", r) }})
	require.NoError(t, w.Close())
	for _, path := range append(others, link, "../"+filepath.Base(filepath.Dir(outside))+"/outside") {
		got, err := os.ReadFile(filepath.Join(dir, path))
		require.NoError(t, err)
		assert.Equal(t, data[:len(data)-1], got, path)
	}
	assert.DirExists(t, filepath.Join(dir, folder))
	assert.Len(t, list(t, dir), len(others)+2)
}

// TestRecoveryNeverReplaces: the closed name is taken by another file, or, after a crash between the two steps of a rename by link, by
// the same one.
func TestRecoveryNeverReplaces(t *testing.T) {
	const size = 30
	format := allFormats[2]
	name := Name{Time: time.Unix(5, 0).UTC(), Sequence: 9, Format: format}
	partial := name
	partial.Partial = true
	for _, same := range []bool{false, true} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, partial.String()), fileOf(t, format, 3, size), 0o600))
		want, names := []int{1, 2, 3}, []string{"profiles-19700101T000005.000Z-000009.otlp.pb.zst"}
		if same {
			require.NoError(t, os.Link(filepath.Join(dir, partial.String()), filepath.Join(dir, name.String())))
		} else {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name.String()), fileOf(t, format, 1, size), 0o600))
			want, names = []int{1, 1, 2, 3}, append(names, "profiles-19700101T000005.000Z-000010.otlp.pb.zst")
		}
		require.NoError(t, openTestWriter(t, dir, Options{Format: format}).Close())
		assert.Equal(t, names, list(t, dir))
		assert.Equal(t, want, readAll(t, dir, size))
	}
}

// TestRecoveryLeavesLiveFiles: what another Writer has open is not a leftover.
func TestRecoveryLeavesLiveFiles(t *testing.T) {
	const size = 30
	forEachFormat(t, func(t *testing.T, format Format) {
		dir := t.TempDir()
		first := openTestWriter(t, dir, Options{Format: format})
		require.NoError(t, first.Append(plainRecord(format.Content, 1, size)))
		before := list(t, dir)
		second := openTestWriter(t, dir, Options{Format: format, FileRecovered: func(r RecoveredFile) { t.Errorf("repaired %+v", r) }})
		assert.Equal(t, before, list(t, dir))
		require.NoError(t, second.Append(plainRecord(format.Content, 2, size)))
		require.NoError(t, first.Append(plainRecord(format.Content, 3, size)))
		require.NoError(t, first.Close())
		require.NoError(t, second.Close())
		assert.ElementsMatch(t, []int{1, 2, 3}, readAll(t, dir, size))
	})
}

// TestRecoverySyncsDirectoriesAboveGroups: a crash may have left directories that are not on the disk.
func TestRecoverySyncsDirectoriesAboveGroups(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700))
	for levels, want := range []int{0, 1, 2} {
		var count syncs
		f := faults{before: count.add}
		w := openTestWriter(t, dir, Options{Format: allFormats[0], Levels: levels, OpenDir: f.openDir})
		assert.Equal(t, want, count.dirs, "%d levels", levels)
		require.NoError(t, w.Close())
	}
}
