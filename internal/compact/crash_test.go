// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact_test

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

var errCrash = errors.New("the process was killed")

// crash lets n calls of the file system succeed, and none after them.
type crash struct{ left int }

func (c *crash) next() error {
	if c.left--; c.left < 0 {
		return errCrash
	}
	return nil
}

type crashDir struct {
	recordfile.Dir
	*crash
}

func (d crashDir) file(f recordfile.File, err error) (recordfile.File, error) {
	return crashFile{f, d.crash}, err
}

func (d crashDir) Create(name string) (recordfile.File, error) {
	if err := d.next(); err != nil {
		return nil, err
	}
	return d.file(d.Dir.Create(name))
}

func (d crashDir) Open(name string) (recordfile.File, error) {
	if err := d.next(); err != nil {
		return nil, err
	}
	return d.file(d.Dir.Open(name))
}

func (d crashDir) Lstat(name string) (fs.FileInfo, error) {
	if err := d.next(); err != nil {
		return nil, err
	}
	return d.Dir.Lstat(name)
}

func (d crashDir) Rename(from, to string) error {
	if err := d.next(); err != nil {
		return err
	}
	return d.Dir.Rename(from, to)
}

func (d crashDir) Remove(name string) error {
	if err := d.next(); err != nil {
		return err
	}
	return d.Dir.Remove(name)
}

func (d crashDir) Names() ([]string, error) {
	if err := d.next(); err != nil {
		return nil, err
	}
	return d.Dir.Names()
}

func (d crashDir) OpenChild(name string) (recordfile.Dir, error) {
	if err := d.next(); err != nil {
		return nil, err
	}
	child, err := d.Dir.OpenChild(name)
	return crashDir{child, d.crash}, err
}

func (d crashDir) Sync() error {
	if err := d.next(); err != nil {
		return err
	}
	return d.Dir.Sync()
}

type crashFile struct {
	recordfile.File
	*crash
}

func (f crashFile) WriteAt(data []byte, at int64) (int, error) {
	if err := f.next(); err != nil {
		n, _ := f.File.WriteAt(data[:len(data)/2], at) // a part is written
		return n, err
	}
	return f.File.WriteAt(data, at)
}

func (f crashFile) Sync() error {
	if err := f.next(); err != nil {
		return err
	}
	return f.File.Sync()
}

// TestACrashAtAnyStepLosesAndDoublesNothing: after a crash at each call of the file system, while a file is made and while
// its inputs are removed, readers see the same sums, and the next process finishes the work.
func TestACrashAtAnyStepLosesAndDoublesNothing(t *testing.T) {
	from, to := begin.Add(-time.Hour), begin.Add(2*time.Hour)
	made, removed := begin.Add(3*time.Hour), time.Now().Add(24*time.Hour)
	for steps, done := 0, false; !done; steps++ {
		h := newHistory(t)
		h.writeRandom(profiletest.NewRand(9), begin, 2)
		want := h.sums("", from, to)
		for _, now := range []time.Time{made, removed} {
			c := &crash{left: steps}
			options := h.options(now)
			options.Into = options.Into[:1]
			options.OpenDir = func(path string, group ...string) (recordfile.Dir, error) {
				dir, err := recordfile.OpenDir(path, group...)
				return crashDir{dir, c}, err
			}
			err := compact.New(options).Run(t.Context())
			done = err == nil && c.left >= 0
			require.Empty(t, difference(want, h.sums("", from, to)), "%d steps", steps)

			options.OpenDir = nil
			require.NoError(t, compact.New(options).Run(t.Context()), "%d steps", steps)
			require.Empty(t, difference(want, h.sums("", from, to)), "%d steps", steps)
		}
		require.NoError(t, compact.New(func() compact.Options { o := h.options(removed); o.Into = o.Into[:1]; return o }()).Run(t.Context()))
		require.Empty(t, h.skipped)
		assert.Equal(t, []string{"profiles-20261120T000000.000Z-000001.1h0m0s.otlp.pb.zst"}, h.names(), "%d steps", steps)
		if steps > 1000 {
			require.Fail(t, "it does not end")
		}
	}
}
