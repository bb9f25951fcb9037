// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// openUnsynced opens directories that sync nothing, which would take most of the time.
var openUnsynced = hooked(func(string) error { return nil })

// TestAListMissesNothing_A4 lists a directory while a writer closes files, and a compactor makes one of others and removes them. All that
// was there when the list began is in it exactly once.
func TestAListMissesNothing_A4(t *testing.T) {
	for _, files := range []int{100, 1000, 5000} {
		t.Run(fmt.Sprint(files), func(t *testing.T) {
			h := newHistory(t)
			pd := payloadtest.With(payloadtest.Interval(uint64(begin.UnixNano()), 1e9, 1), "service.name", "checkout")
			h.write(begin, nil, pd)
			name, ours := recordfile.ParseName(h.names()[0])
			require.True(t, ours)
			content, err := os.ReadFile(filepath.Join(h.dir, name.String()))
			require.NoError(t, err)
			inputs := map[string]bool{}
			for i := range files { // a tenth is compacted, and the others are closed
				n := name
				n.Sequence += uint64(i)
				if i >= files/10 {
					n.Time, n.Partial = begin.Add(24*time.Hour), true
				} else {
					inputs[filepath.Join(h.dir, n.String())] = true
				}
				require.NoError(t, os.WriteFile(filepath.Join(h.dir, n.String()), content, 0o600))
			}

			var working sync.WaitGroup
			var done atomic.Int64
			working.Go(func() {
				defer done.Add(1)
				w, err := recordfile.OpenWriter(recordfile.Options{
					Directory: h.dir, Format: format, MaxOpen: 1, OpenDir: openUnsynced, Failed: func(err error) { assert.NoError(t, err) },
				})
				if assert.NoError(t, err) {
					assert.NoError(t, w.Close())
				}
			})
			h.start(func(o *compact.Options) { o.OpenDir = openUnsynced })
			working.Go(func() {
				defer done.Add(1)
				for minutes := range 4 { // makes the file, and removes its inputs
					h.run(begin.Add(3*time.Hour + time.Duration(minutes)*time.Minute))
				}
			})
			lists := 0
			for last := false; !last; lists++ {
				last = done.Load() == 2
				found, failed := archive.Find([]string{h.dir})
				assert.Empty(t, failed)
				old, other, results := 0, map[string]bool{}, 0
				for _, f := range found {
					name, _ := recordfile.ParseName(filepath.Base(f.Path))
					switch {
					case inputs[f.Path]:
						old++
					case name.Span > 0:
						results++
					default:
						other[strings.TrimSuffix(f.Path, recordfile.PartialSuffix)] = true
					}
				}
				assert.True(t, old == files/10 && results == 0 || old == 0 && results == 1, "%d inputs and %d results", old, results)
				assert.Len(t, other, files-files/10, "list %d", lists)
				assert.Len(t, found, old+results+len(other), "nothing is found twice")
				if t.Failed() {
					break
				}
			}
			working.Wait()
			assert.Greater(t, lists, 1)
			assert.Empty(t, h.skipped)
			require.Len(t, h.results, 1)
			assert.Equal(t, files/10, h.results[0].Inputs)
		})
	}
}

// TestManifestsThatCannotBeReadAreReported_A5 changes or cuts the manifest at each of some bytes, or removes it, while the inputs are
// there. Readers say what may count twice, nothing is compacted or removed, and what was repaired goes on.
func TestManifestsThatCannotBeReadAreReported_A5(t *testing.T) {
	h := newHistory(t)
	h.writeRandom(profiletest.NewRand(6), begin, 3)
	want := h.sums("", begin.Add(-time.Hour), begin.Add(2*time.Hour))
	h.run(begin.Add(3 * time.Hour))
	require.Len(t, h.results, 1)
	names := h.names()
	result := filepath.Join(h.dir, filepath.Base(h.results[0].Path))
	manifest := filepath.Join(h.dir, recordfile.ManifestName(filepath.Base(result)))
	content, err := os.ReadFile(manifest)
	require.NoError(t, err)
	var damaged [][]byte
	for i := range content {
		flipped := append([]byte(nil), content...)
		flipped[i] ^= 1
		damaged = append(damaged, flipped, content[:i])
	}
	damaged = append(damaged, nil) // it is missing
	for i, data := range damaged {
		require.NoError(t, os.Remove(manifest))
		if data != nil {
			require.NoError(t, os.WriteFile(manifest, data, 0o600))
		}
		files, failed := archive.Find([]string{h.dir})
		require.Len(t, failed, 1, "%d: %q", i, data)
		require.ErrorContains(t, failed[0], result+": the list of the files that it replaces is ")
		require.ErrorContains(t, failed[0], "; it may count twice, as do files of its time such as "+names[1]+" (3 in all)")
		require.Len(t, files, 4)
		h.start()
		for hours := range 2 {
			h.run(begin.Add(time.Duration(30+hours) * time.Hour))
		}
		require.Equal(t, []string{result, names[1], names[2], names[3]}, trimmed(h, h.skipped), "reported once")
		h.skipped = nil
		if data == nil {
			require.NoError(t, os.WriteFile(manifest, nil, 0o600))
		}
		require.Equal(t, names, h.names())
	}
	require.NoError(t, os.WriteFile(manifest, content, 0o600))
	require.Empty(t, difference(want, h.sums("", begin.Add(-time.Hour), begin.Add(2*time.Hour))))
	h.finish(begin.Add(40 * time.Hour))
	require.Len(t, h.names(), 1)
	require.Contains(t, h.names()[0], ".24h0m0s.")
	require.Empty(t, difference(want, h.sums("", begin.Add(-time.Hour), begin.Add(2*time.Hour))))
}

// trimmed are paths, the inputs without their directory.
func trimmed(h *history, paths []string) (names []string) {
	for i, path := range paths {
		if i > 0 {
			path = strings.TrimPrefix(path, h.dir+"/")
		}
		names = append(names, path)
	}
	return names
}
