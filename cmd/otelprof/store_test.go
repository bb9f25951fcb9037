// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/s3test"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compact"
)

// interval is one of a service an hour ago, with this value.
func interval(service string, value int64) pprofile.Profiles {
	start := uint64(time.Now().Add(-time.Hour).UnixNano())
	return payloadtest.With(payloadtest.Interval(start, 1e9, value), "service.name", service)
}

// sums returns those of ls, by service.
func sums(t *testing.T, args ...string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for _, row := range rows(t, args...) {
		all[row.Service] += row.Sum
	}
	return all
}

// filesOf returns the paths of the segments below a directory.
func filesOf(t *testing.T, dir string) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".otlp.pb.zst") {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// All commands read a directory of the exporter, one above it, a prefix of a bucket, and a single file.
func TestDirectoriesOfTheExporter(t *testing.T) {
	dir := written(t, []pprofile.Profiles{interval("cart", 1), interval("cart", 2), interval("checkout", 4)})
	want := map[string]int64{"cart": 3, "checkout": 4}
	profiletest.WriteAt(t, filepath.Join(filepath.Dir(dir), "other.otlp.pb"), profiletest.Proto(t, interval("other", 8)), time.Now())
	profiletest.WriteAt(t, filepath.Join(dir, "damaged", "service.name=cart", "file.otlp.pb"), profiletest.Proto(t, interval("cart", 16)), time.Now())
	bucket := s3test.New(t)
	bucket.PutDirectory(t, dir, "p")
	assert.Equal(t, want, sums(t, dir))
	assert.Equal(t, want, sums(t, dir, dir+"/"), "each once")
	assert.Equal(t, want, sums(t, bucket.Path("p")))
	assert.Equal(t, want, sums(t, bucket.Path("p"), bucket.Path("p/")), "each once")
	for _, file := range filesOf(t, dir) {
		inside, err := filepath.Rel(dir, file)
		require.NoError(t, err)
		for inside = filepath.ToSlash(filepath.Dir(inside)); strings.Contains(inside, "/"); inside = path.Dir(inside) { // hour, day, month, year
			service := strings.TrimPrefix(strings.Split(inside, "/")[0], "service.name=")
			assert.Equal(t, map[string]int64{service: want[service]}, sums(t, bucket.Path("p/"+inside)), inside)
			group := "p/service.name=" + service
			assert.Equal(t, map[string]int64{service: want[service]}, sums(t, bucket.Path("p/"+inside), bucket.Path(group), bucket.Path(group)), "each once")
			assert.Equal(t, want, sums(t, bucket.Path("p/"+inside), bucket.Path(group), bucket.Path("p")), "each once")
		}
	}
	profiletest.WriteAt(t, filepath.Join(dir, "inside", "file.otlp.pb"), profiletest.Proto(t, interval("inside", 32)), time.Now())
	assert.Equal(t, map[string]int64{"cart": 3, "checkout": 4, "inside": 32}, sums(t, dir))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "inside")))
	assert.Equal(t, map[string]int64{"cart": 3, "checkout": 4, "other": 8}, sums(t, filepath.Dir(dir)), "with a file of another program beside it")
	assert.Equal(t, map[string]int64{"cart": 3}, sums(t, filepath.Join(dir, "service.name=cart")))
	for _, path := range filesOf(t, dir) {
		if strings.Contains(path, "cart") {
			assert.Equal(t, map[string]int64{"cart": 3}, sums(t, path))
		}
	}
	for _, location := range []string{dir, bucket.Path("p")} {
		assert.Equal(t, 3, strings.Count(succeed(t, "cat", location), "\n"))
		_, out, _ := otelprof(t, "check", location)
		assert.Contains(t, out, "Checked 3 records in 2 files")
		assert.NotEmpty(t, succeed(t, "top", location))
		assert.NotEmpty(t, succeed(t, "convert", "--format", "otlp", "--service", "cart", location))
		assert.NotEmpty(t, succeed(t, "convert", "--format", "parquet", location))
		assert.NotEmpty(t, succeed(t, "diff", location, location))
	}
}

// What compaction has replaced does not count, whether it was removed or not.
func TestCompactedDirectoryCountsOnce(t *testing.T) {
	dir := written(t, []pprofile.Profiles{interval("cart", 1), interval("cart", 2)})
	inputs := filesOf(t, dir)
	content, err := os.ReadFile(inputs[0])
	require.NoError(t, err)
	c := compact.New(compact.Options{
		Directory: dir, Resolutions: []time.Duration{time.Minute}, MaxMemory: 1 << 28, Now: func() time.Time { return time.Now().Add(3 * time.Hour) },
		Compacted: func(compact.Result) {}, Skipped: func(path string, err error) { t.Error(path, err) }, Damaged: func(path string) { t.Error(path) },
	})
	require.NoError(t, c.Run(t.Context()))
	require.NotEqual(t, inputs, filesOf(t, dir))
	require.NoError(t, os.MkdirAll(filepath.Dir(inputs[0]), 0o700))
	require.NoError(t, os.WriteFile(inputs[0], content, 0o600))
	assert.Equal(t, map[string]int64{"cart": 3}, sums(t, dir))
	for inside := filepath.Dir(filepath.Dir(inputs[0])); inside != dir; inside = filepath.Dir(inside) { // day, month, year, group
		assert.Equal(t, map[string]int64{"cart": 3}, sums(t, inside), inside)
		assert.Equal(t, map[string]int64{"cart": 3}, sums(t, inside, dir), "each once")
	}
}

// ls reports damage that it sees, as in a file without an index; check sees all.
func TestDamageInADirectoryOfTheExporter(t *testing.T) {
	dir := written(t, []pprofile.Profiles{interval("cart", 1), interval("cart", 2), interval("cart", 4)})
	path := filesOf(t, dir)[0]
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	magic := string([]byte{0x28, 0xb5, 0x2f, 0xfd})
	second := strings.Index(string(whole[4:]), magic) + 4
	damaged := slices.Clone(whole)
	damaged[second+40] ^= 0xff
	require.NoError(t, os.WriteFile(path, damaged, 0o600))
	assert.Equal(t, map[string]int64{"cart": 7}, sums(t, dir), "by the index")
	code, out, notes := otelprof(t, "check", dir)
	assert.Equal(t, exitWrong, code)
	assert.Contains(t, notes, path+": record 2 at byte ")
	assert.Contains(t, out, "Checked 2 records in 1 file")

	damaged[len(damaged)-5] ^= 0xff // the index, too
	require.NoError(t, os.WriteFile(path, damaged, 0o600))
	code, _, notes = otelprof(t, "ls", "--json", dir)
	assert.Equal(t, exitWrong, code)
	assert.Contains(t, notes, "skipped")
}
