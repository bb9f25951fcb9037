// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func TestFileConfig(t *testing.T) {
	cfg, err := loadConfig("file: {include: '/tmp/pprof/{a,b}/*', exclude: '{c,d}'}")
	require.NoError(t, err)
	assert.Equal(t, []string{"/tmp/pprof/{a,b}/*"}, cfg.File.Get().Watch.Include, "one glob needs no list")
	assert.Equal(t, []string{"{c,d}"}, cfg.File.Get().Watch.Exclude)

	profiletest.CheckConfigs(t, createDefaultConfig, map[string]string{
		"file: {}":                                          "file: include is []: must be a glob",
		"file: {include: ['']}":                             "include is \"\": must be a glob",
		"file: {include: ['/a/[']}":                         "include is \"/a/[\": must be a glob",
		"file: {include: ['/a/*~']}":                        "must be a glob of finished files",
		"file: {include: [/b, '/a/*.tmp']}":                 "include is \"/a/*.tmp\": must be a glob of finished files",
		"file: {include: [a], exclude: ['[']}":              "exclude is \"[\": must be a glob",
		"file: {include: [a], path_attributes: '('}":        "path_attributes is \"(\": must be a regular expression: ",
		"file: {include: [a], path_attributes: '(a)'}":      "must be a regular expression with a named group",
		"file: {include: [a], poll_interval: 1ns}":          "poll_interval is 1ns: must be at least 1ms",
		"file: {include: [a], max_decompressed_size: 0}":    "max_decompressed_size is 0B",
		"file: {include: [a], max_decompressed_size: 8GiB}": "at most",
	})
}

// writeProfile writes a profile that differs by value, as gzip, with this time of
// modification.
func writeProfile(t *testing.T, path string, value int64, modified time.Time) {
	t.Helper()
	profiletest.WriteAt(t, path, profiletest.Gzip(t, profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", value))), modified)
}

func fileYAML(dir, keys string) string {
	return "file: {include: ['" + filepath.ToSlash(dir) + "/**/*.gz'], poll_interval: 5ms" + keys + "}\n"
}

// values are the first values of payloads, in order.
func values(payloads []pprofile.Profiles) (all []int64) {
	for _, pd := range payloads {
		p := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(1) // samples
		all = append(all, p.Samples().At(0).Values().At(0))
	}
	return all
}

func (b *testReceiver) fileOutcomes() map[string]int64 {
	return b.counts("otelcol_receiver_pprof_files", "outcome")
}

// Files that cannot be read do not block others, and links do not lead out of the directory.
func TestOddFiles_R17(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	old := time.Now().Add(-time.Hour)
	writeProfile(t, filepath.Join(outside, "secret.pb.gz"), 666, old)
	writeProfile(t, filepath.Join(dir, "target"), 2, old)
	if runtime.GOOS != "windows" {
		require.NoError(t, exec.CommandContext(t.Context(), "mkfifo", filepath.Join(dir, "fifo.pb.gz")).Run())
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "directory.pb.gz"), 0o700))
	for name, to := range map[string]string{
		"out.pb.gz":      filepath.Join(outside, "secret.pb.gz"),
		"out-dir":        outside,
		"dangling.pb.gz": "nowhere",
		"self.pb.gz":     "self.pb.gz",
		"circle":         ".",
		"inside.pb.gz":   "target",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	for name, content := range map[string][]byte{
		"empty.pb.gz": nil,
		"text.pb.gz":  []byte("no profile"),
		"large.pb.gz": make([]byte, 1<<20+1),
		"bomb.pb.gz":  profiletest.Gzip(t, make([]byte, 1<<20+1)),
		"half.pb.gz":  profiletest.Gzip(t, profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 9)))[:40],
		"x.pb.gz.tmp": []byte("x"),
	} {
		profiletest.WriteAt(t, filepath.Join(dir, name), content, old)
	}
	writeProfile(t, filepath.Join(dir, "good.pb.gz"), 1, old)
	next := &sink{t: t}
	b := newTestReceiver(t, fileYAML(dir, ", max_decompressed_size: 1MiB"), next)
	b.files.Poll(t.Context())
	b.files.Poll(t.Context())
	assert.ElementsMatch(t, []int64{1, 2}, values(next.AllProfiles()))
	assert.Equal(t, map[string]int64{"success": 2, "malformed": 2, "too_large": 2}, b.fileOutcomes(), "each once")
	assert.Zero(t, b.logs.FilterMessage("Cannot list directory; will retry").Len(), "the directory can be listed")

	// A skipped file is read when it changes.
	writeProfile(t, filepath.Join(dir, "half.pb.gz"), 9, old.Add(time.Minute))
	b.files.Poll(t.Context())
	assert.ElementsMatch(t, []int64{1, 2, 9}, values(next.AllProfiles()))
	profiletest.Account(t, "13 odd files, links and directories", 3, len(next.AllProfiles()), 0)
}

// A file whose path path_attributes does not match is read without these attributes, with
// one warning for all, and counted.
func TestPathAttributesDoNotMatch(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for i, name := range []string{"services/checkout/1.gz", "2.gz", "other/3.gz"} {
		writeProfile(t, filepath.Join(dir, name), int64(i+1), old.Add(time.Duration(i)*time.Second))
	}
	next := &sink{t: t}
	const expression = "/services/(?P<service_name>[^/]+)/"
	b := newTestReceiver(t, "resource_attributes: {service.name: common}\n"+fileYAML(dir, ", path_attributes: '"+expression+"'"), next)
	b.files.Poll(t.Context())
	b.files.Poll(t.Context())
	var services []string
	for _, pd := range next.AllProfiles() {
		name, _ := pd.ResourceProfiles().At(0).Resource().Attributes().Get("service.name")
		services = append(services, name.Str())
	}
	assert.Equal(t, []string{"checkout", "common", "common"}, services)
	warnings := b.logs.FilterMessage("File path does not match path_attributes; reading it without these attributes").All()
	require.Len(t, warnings, 1)
	assert.Equal(t, map[string]any{"path": filepath.Join(dir, "2.gz"), "path_attributes": expression}, warnings[0].ContextMap())
	assert.Equal(t, map[string]int64{"pprof/test": 2}, b.counts("otelcol_receiver_pprof_unmatched_files", "receiver"))
}

// A file that cannot be read, or at which the pipeline panics, is retried. A permanent error of the pipeline does not
// concern the file, also if it wraps an error of a file system.
func TestTriedAgain_R17(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		old := time.Now().Add(-time.Hour)
		for i := range 5 {
			writeProfile(t, filepath.Join(dir, fmt.Sprintf("%d.pb.gz", i)), int64(i), old.Add(time.Duration(i)*time.Minute))
		}
		next := &sink{t: t}
		faults := map[int64]func() error{ // by value, once
			1: func() error { explode(); return nil },
			2: func() error {
				return consumererror.NewPermanent(&fs.PathError{Op: "write", Path: "/x", Err: syscall.EROFS})
			},
			3: func() error { return os.Remove(filepath.Join(dir, "4.pb.gz")) }, // after it was found
		}
		b := newTestReceiver(t, fileYAML(dir, ""), consumer(t, func(ctx context.Context, pd pprofile.Profiles) error {
			value := values([]pprofile.Profiles{pd})[0]
			if fault := faults[value]; fault != nil {
				delete(faults, value)
				return fault()
			}
			return next.ConsumeProfiles(ctx, pd)
		}))
		b.files.Poll(t.Context())
		assert.Equal(t, []int64{0}, values(next.AllProfiles()))
		assert.Equal(t, map[string]int64{"success": 2, "panic": 1, "rejected": 1, "unreadable": 1}, b.fileOutcomes())
		writeProfile(t, filepath.Join(dir, "4.pb.gz"), 4, old)
		for range 3 {
			time.Sleep(time.Minute)
			b.files.Poll(t.Context())
		}
		assert.ElementsMatch(t, []int64{0, 1, 4}, values(next.AllProfiles()))
		assert.Equal(t, map[string]int64{"success": 4, "panic": 1, "rejected": 1, "unreadable": 1}, b.fileOutcomes())
		b.assertPanicLogged()
		profiletest.Injected(t, "1 panics, 1 permanent errors, 1 failures to read")
	})
}

func TestStorageIsAnExtension(t *testing.T) {
	b := newTestReceiver(t, fileYAML(t.TempDir(), ", storage: file_storage"), &sink{t: t})
	assert.ErrorContains(t, b.Start(t.Context(), componenttest.NewNopHost()), "extension \"file_storage\" not found")
	assert.ErrorContains(t, b.Start(t.Context(), profiletest.Host{profiletest.StorageID: doorman{}}), "extension \"file_storage\" is not a storage extension")
}

const legacyHeap = "heap profile: 1: 2048 [3: 8192] @ heap_v2/524288\n 1: 2048 [3: 8192] @ 0x401000 0x402000\n"

// A profile without a time gets the modification time of its file, so that one that is read again has the same profile IDs.
func TestFilesFromBeforeProtobuf(t *testing.T) {
	directory, modified := t.TempDir(), time.Now().Add(-time.Hour)
	profiletest.WriteAt(t, filepath.Join(directory, "b.prof"), profiletest.Gzip(t, []byte(legacyHeap)), modified)
	next := &sink{t: t}
	newTestReceiver(t, "file: {include: ['"+directory+"/*.prof']}", next).files.Poll(t.Context())
	want, err := profile.ParseData([]byte(legacyHeap))
	require.NoError(t, err)
	want.TimeNanos = modified.UnixNano()
	assertHolds(t, want, next.only())
}
