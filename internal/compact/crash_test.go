// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/goleak"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hook is asked before each call of the file system, which is named by method and file. The call fails with its error.
type hook func(call string) error

// hooked opens directories with a hook.
func hooked(before hook) func(path string, group ...string) (recordfile.Dir, error) {
	return func(path string, group ...string) (recordfile.Dir, error) {
		dir, err := recordfile.OpenDir(path, group...)
		return hookedDir{dir, before}, err
	}
}

type hookedDir struct {
	recordfile.Dir
	before hook
}

func (d hookedDir) file(call, name string, open func(string) (recordfile.File, error)) (recordfile.File, error) {
	if err := d.before(call + " " + name); err != nil {
		return nil, err
	}
	f, err := open(name)
	return hookedFile{f, d.before}, err
}

func (d hookedDir) Create(name string) (recordfile.File, error) {
	return d.file("Create", name, d.Dir.Create)
}

func (d hookedDir) Open(name string) (recordfile.File, error) {
	return d.file("Open", name, d.Dir.Open)
}

func (d hookedDir) Lstat(name string) (fs.FileInfo, error) {
	if err := d.before("Lstat " + name); err != nil {
		return nil, err
	}
	return d.Dir.Lstat(name)
}

func (d hookedDir) Rename(from, to string) error {
	if err := d.before("Rename " + from); err != nil {
		return err
	}
	return d.Dir.Rename(from, to)
}

func (d hookedDir) Remove(name string) error {
	if err := d.before("Remove " + name); err != nil {
		return err
	}
	return d.Dir.Remove(name)
}

func (d hookedDir) Names() ([]string, error) {
	if err := d.before("Names"); err != nil {
		return nil, err
	}
	return d.Dir.Names()
}

func (d hookedDir) OpenChild(name string) (recordfile.Dir, error) {
	if err := d.before("OpenChild " + name); err != nil {
		return nil, err
	}
	child, err := d.Dir.OpenChild(name)
	return hookedDir{child, d.before}, err
}

func (d hookedDir) Sync() error { return d.before("Sync") }

type hookedFile struct {
	recordfile.File
	before hook
}

func (f hookedFile) WriteAt(data []byte, at int64) (int, error) {
	if err := f.before("WriteAt"); err != nil {
		n, _ := f.File.WriteAt(data[:len(data)/2], at) // a part is written
		return n, err
	}
	return f.File.WriteAt(data, at)
}

func (f hookedFile) Sync() error { return f.before("SyncFile") }

// lifetimes are the times at which a process compacts: it makes the hour, removes its inputs, and does the same for the
// day.
var lifetimes = []time.Duration{
	3 * time.Hour, 3*time.Hour + 2*time.Minute, 3*time.Hour + 4*time.Minute, 30 * time.Hour, 30*time.Hour + 2*time.Minute, 30*time.Hour + 4*time.Minute,
}

var errCrash = errors.New("the process was killed")

// TestACrashAtAnyStepLosesAndDoublesNothing_E3_E4: after a crash at each call of the file system, while files of both levels are made and
// while their inputs are removed, readers see the same sums, and the next process finishes the work. What a step needs of those before
// it is on the disk, should power fail.
func TestACrashAtAnyStepLosesAndDoublesNothing_E3_E4(t *testing.T) {
	from, to := begin.Add(-time.Hour), begin.Add(2*time.Hour)
	stride, first := 4, int(profiletest.Seed(t)%4)
	if full, _ := profiletest.Soak(t); full {
		stride, first = 1, 0
	}
	for steps := first; ; steps += stride {
		h := newHistory(t)
		h.writeRandom(profiletest.NewRand(9), begin, 2)
		want := h.sums("", from, to)
		left, unsynced := steps, map[string]bool{} // kinds of calls
		h.start(func(o *compact.Options) {
			o.OpenDir = hooked(func(call string) error {
				if left--; left < 0 {
					return errCrash
				}
				kind, name, _ := strings.Cut(call, " ")
				_, isFile := recordfile.ParseName(name)
				assert.False(t, kind == "Rename" && strings.Contains(name, "/") && (unsynced["Create"] || unsynced["WriteAt"]), "a file and its manifest come before its name")
				assert.False(t, kind == "Remove" && isFile && unsynced["Rename"], "a name comes before the removal of inputs")
				unsynced[kind] = true
				if kind == "Sync" {
					unsynced = map[string]bool{"WriteAt": unsynced["WriteAt"]}
				}
				unsynced["WriteAt"] = unsynced["WriteAt"] && kind != "SyncFile"
				return nil
			})
		})
		for _, at := range lifetimes {
			h.now = begin.Add(at)
			err := h.compactor.Run(t.Context())
			if left < 0 {
				break
			}
			require.NoError(t, err)
		}
		require.Empty(t, difference(want, h.sums("", from, to)), "%d steps", steps)
		h.start()
		for _, at := range lifetimes {
			h.run(begin.Add(at))
			require.Empty(t, difference(want, h.sums("", from, to)), "%d steps, then %v", steps, at)
		}
		h.finish(begin.Add(31 * time.Hour))
		h.finish(begin.Add(32 * time.Hour))
		require.Empty(t, difference(want, h.sums("", from, to)), "%d steps", steps)
		require.Empty(t, h.skipped)
		require.Len(t, h.names(), 1, "%d steps", steps)
		require.Contains(t, h.names()[0], ".24h0m0s.", "%d steps", steps)
		if left >= 0 {
			return
		}
	}
}

// TestManyLabelValuesAreCompacted_A1: the labels of two files with 250 values each do not fit into one index.
func TestManyLabelValuesAreCompacted_A1(t *testing.T) {
	h := newHistory(t)
	for file := range 2 {
		at := begin.Add(time.Duration(file) * time.Minute)
		pd := pprofile.NewProfiles()
		for n := range 250 {
			one := payloadtest.With(payloadtest.Interval(uint64(at.UnixNano()), 1e9, 1), "service.name", "checkout", "pod", fmt.Sprintf("pod-%d-%06d", file, n))
			pd = payloadtest.InOne(t, pd, one)
		}
		h.write(at, nil, pd)
	}
	want := h.sums("", begin, begin.Add(time.Hour), time.Minute)
	h.finish(begin.Add(3 * time.Hour))
	require.Len(t, h.results, 1)
	assert.Empty(t, h.skipped)
	assert.Empty(t, difference(want, h.sums("", begin, begin.Add(time.Hour), time.Minute)))
}

// TestAPanicIsAnErrorOfTheRun_A11: the next run makes the files.
func TestAPanicIsAnErrorOfTheRun_A11(t *testing.T) {
	h, failing := newHistory(t), true
	h.writeRandom(profiletest.NewRand(9), begin, 2)
	want := h.sums("", begin, begin.Add(time.Hour))
	h.start(func(o *compact.Options) {
		o.OpenDir = hooked(func(call string) error {
			if failing && strings.HasPrefix(call, "Rename") {
				panic(call)
			}
			return nil
		})
	})
	h.now = begin.Add(3 * time.Hour)
	err := h.compactor.Run(t.Context())
	var panicked *panics.Error
	require.ErrorAs(t, err, &panicked)
	require.Empty(t, difference(want, h.sums("", begin, begin.Add(time.Hour))))
	failing = false
	h.finish(begin.Add(3*time.Hour + 2*time.Minute))
	require.Len(t, h.results, 1)
	require.Empty(t, difference(want, h.sums("", begin, begin.Add(time.Hour))))
}
