// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/lake"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// world is a directory with two processes that write to it, and a model: the records that were acknowledged, and those whose call failed
// because the process was killed, which may be there or not.
type world struct {
	t      *testing.T
	r      *rand.Rand
	dir    string
	now    time.Time
	reader *store.Store

	processes [2]*process
	writers   [2]*store.Writer

	leftOut int // partitions without Parquet

	next         int
	acknowledged map[int]int
	unknown      map[int]bool
	failures     int
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, r: profiletest.NewRand(seed), dir: t.TempDir(), now: begin.Add(30 * time.Minute),
		acknowledged: map[int]int{}, unknown: map[int]bool{},
	}
	w.reader = openStore(t, w.dir)
	return w
}

// writer returns a running process.
func (w *world) writer(i int) *store.Writer {
	if w.writers[i] != nil {
		return w.writers[i]
	}
	p := &process{}
	opened, err := store.OpenWriter(w.options(p))
	require.NoError(w.t, err)
	w.processes[i], w.writers[i] = p, opened
	return opened
}

func (w *world) options(p *process) store.Options {
	return store.Options{
		Directory: w.dir, Format: segment.Proto, Rotation: store.Rotation{MaxRecords: 4, MaxAge: 10 * time.Minute}, Sync: store.SyncRecord, MaxOpen: 2,
		OpenDir: p.openDir, Now: func() time.Time { return w.now },
		Failed: func(err error) { assert.True(w.t, isKilled(err), err) },
	}
}

// isKilled reports whether a call failed because its process was killed before or during it.
func isKilled(err error) bool { return errors.Is(err, errKilled) || errors.Is(err, os.ErrClosed) }

func (w *world) append(i int) {
	writer := w.writer(i)
	w.next++
	id := w.next
	end := w.now.Add(-time.Duration(w.r.Int64N(int64(3 * time.Hour))))
	if w.r.IntN(8) == 0 {
		end = w.now.Add(time.Duration(w.r.Int64N(int64(3 * time.Hour))))
	}
	record := newRecord(w.t, segment.Proto, fmt.Sprint("service-", w.r.IntN(3)), id, end.Add(-time.Second), end)
	switch err := writer.Append(record); {
	case err == nil:
		w.acknowledged[id] = 1
	case isKilled(err):
		w.unknown[id] = true
		w.writers[i] = nil
	default:
		require.NoError(w.t, err)
	}
}

// killAt kills a process at one of its next calls.
func (w *world) killAt(p *process, calls int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before = func(string) error {
		if calls--; calls < 0 {
			w.failures++
			return errKilled
		}
		return nil
	}
}

func (w *world) compactor(p *process, clock func() time.Time) *compact.Compactor {
	return compact.New(compact.Options{
		Directory: w.dir, After: 30 * time.Minute, Resolutions: []time.Duration{time.Minute, 10 * time.Minute}, MaxMemory: 64 << 20,
		Compacted: func(compact.Result) {},
		Skipped:   func(path string, err error) { assert.True(w.t, isKilled(err), "%s: %v", path, err) },
		Damaged:   func(path string) { assert.Fail(w.t, "damaged", path) },
		Now:       clock, OpenDir: p.openDir,
		Parquet: &compact.Parquet{
			Written: func(string, lake.Written) {}, LeftOut: func(string, error) { w.leftOut++ },
			Removed: func(path string, _ int64) { assert.Fail(w.t, "removed", path) },
		},
	})
}

func (w *world) clock() time.Time { return w.now }

func (w *world) compact(killAt int) {
	p := &process{}
	if killAt >= 0 {
		w.killAt(p, killAt)
	}
	if err := w.compactor(p, w.clock).Run(w.t.Context()); err != nil {
		require.True(w.t, isKilled(err), err)
	}
	p.kill()
}

// check compares what a reader sees with the model, and the Parquet files with the compacted segments.
func (w *world) check() {
	w.t.Helper()
	counts := readAll(w.t, w.reader)
	segments, err := w.reader.Live(w.t.Context(), time.Time{}, begin.AddDate(1, 0, 0), nil)
	require.NoError(w.t, err)
	compacted := map[int]int{}
	for _, seg := range segments {
		if seg.Level > layout.Written {
			maps.Copy(compacted, countSegment(w.t, seg))
		}
	}
	samples, values := readLake(w.t, w.dir)
	if w.leftOut == 0 {
		require.Equal(w.t, compacted, samples)
	}
	for _, n := range samples {
		values -= int64(n)
	}
	require.Zero(w.t, values, "the sum of the processes")
	for id := range w.unknown {
		require.LessOrEqual(w.t, counts[id], 1, "record %d", id)
		delete(counts, id)
	}
	require.Equal(w.t, w.acknowledged, counts)
}

func (w *world) step() {
	i := w.r.IntN(2)
	switch w.r.IntN(24) {
	default:
		w.append(i)
	case 0, 1:
		w.writer(i).Tick()
		w.writer(i).CloseDue()
	case 2:
		w.now = w.now.Add(time.Duration(w.r.Int64N(int64(4 * time.Hour))))
		w.writer(i).Tick()
		w.writer(i).CloseDue()
	case 3:
		w.now = w.now.Add(-time.Duration(w.r.Int64N(int64(3 * time.Hour)))) // the clock steps back
	case 4:
		w.writer(i)
		w.killAt(w.processes[i], w.r.IntN(20))
	case 5:
		w.writer(i)
		w.processes[i].kill()
		w.writers[i] = nil
	case 6:
		w.writer(i).Maintain()
	case 7:
		if w.writers[i] != nil {
			_ = w.writers[i].Close()
			w.writers[i] = nil
		}
	case 8, 9:
		w.compact(-1)
	case 10, 11, 12:
		w.compact(w.r.IntN(150))
	case 13:
		w.now = w.now.Add(26 * time.Hour)
		w.writer(0).Tick()
		w.writer(0).CloseDue()
		w.writer(1).Tick()
		w.writer(1).CloseDue()
		w.compact(-1)
	}
	for i, p := range w.processes {
		if p != nil && p.killed {
			w.writers[i] = nil
		}
	}
	w.check()
}

// TestNothingIsLostOrCountsTwice_E1_E3: random sequences of what two processes do, which are killed at random calls of the file system, while
// the clock steps. After each step a reader sees each acknowledged record once.
func TestNothingIsLostOrCountsTwice_E1_E3(t *testing.T) {
	for seed := range uint64(profiletest.Rounds(t, 8, 500)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed)
			for range 120 {
				w.step()
			}
			for i := range w.writers {
				if w.writers[i] != nil {
					w.processes[i].before = nil
					require.NoError(t, w.writers[i].Close())
				}
			}
			w.now = w.now.Add(72 * time.Hour)
			for range 3 {
				w.compact(-1)
				w.check()
			}
			for _, name := range paths(t, w.dir) {
				require.False(t, strings.HasSuffix(name, layout.PartialSuffix) || strings.HasSuffix(name, layout.MakingSuffix), "%s is left", name)
			}
			t.Logf("%d acknowledged, %d unknown, %d kills", len(w.acknowledged), len(w.unknown), w.failures)
		})
	}
}

// TestACrashAtAnyStepOfCompaction_E3: after a crash at each call of the file system, while hours and days are made and their inputs removed,
// readers see the same, and the next process finishes the work.
func TestACrashAtAnyStepOfCompaction_E3(t *testing.T) {
	stride := 6
	if full, _ := profiletest.Soak(t); full {
		stride = 1
	}
	points := 0
	for at := int(profiletest.Seed(t) % uint64(stride)); ; at += stride {
		w := newWorld(t, 1)
		for hour := range 2 {
			w.now = begin.Add(time.Duration(hour)*time.Hour + 10*time.Minute)
			for range 3 {
				w.append(0)
			}
			if hour == 1 { // one is left by a killed process
				w.processes[0].kill()
				w.writers[0] = nil
				break
			}
			require.NoError(t, w.writers[0].Close())
			w.writers[0] = nil
		}
		w.now = begin.Add(30 * time.Hour)
		p := &process{}
		w.killAt(p, at)
		for range 2 {
			_ = w.compactor(p, w.clock).Run(t.Context())
			w.check()
		}
		killed := p.killed
		p.kill()
		w.check()
		for range 2 {
			w.compact(-1)
			w.check()
		}
		for _, name := range paths(t, w.dir) {
			if _, ofLake := lake.ParsePath(name); ofLake {
				continue
			}
			f, ok := layout.ParsePath(name)
			require.True(t, ok && f.Level == layout.Day, "%s is left after %d calls", name, at)
		}
		if !killed {
			break
		}
		points++
	}
	require.GreaterOrEqual(t, points, 50)
	t.Logf("%d points", points)
}

// TestReadersOfAWorkingStore_A4: readers that list all the time, while files are written, closed, compacted and removed, see each record that was
// acknowledged before they listed, once.
func TestReadersOfAWorkingStore_A4(t *testing.T) {
	w := newWorld(t, 3)
	var mu sync.Mutex
	acknowledged, now := map[int]int{}, w.now
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	p := &process{}
	options := w.options(p)
	options.Now, options.Sync = clock, store.SyncNone
	writer, err := store.OpenWriter(options)
	require.NoError(t, err)
	compactor := w.compactor(p, clock)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		s := openStore(t, w.dir)
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				mu.Lock()
				before := make([]int, 0, len(acknowledged))
				for id := range acknowledged {
					before = append(before, id)
				}
				mu.Unlock()
				counts := readAll(t, s)
				for _, id := range before {
					if !assert.Equal(t, 1, counts[id], "record %d", id) {
						return
					}
				}
				for id, n := range counts {
					assert.Equal(t, 1, n, "record %d", id)
				}
			}
		})
	}
	records := profiletest.Rounds(t, 200, 20_000)
	for id := 1; id <= records; id++ {
		at := clock()
		require.NoError(t, writer.Append(newRecord(t, segment.Proto, fmt.Sprint("service-", id%3), id, at.Add(-time.Second), at)))
		mu.Lock()
		acknowledged[id] = 1
		now = now.Add(time.Duration(w.r.Int64N(int64(10 * time.Minute))))
		mu.Unlock()
		if id%5 == 0 {
			writer.Tick()
			writer.CloseDue()
			require.NoError(t, compactor.Run(t.Context()))
		}
	}
	close(done)
	readers.Wait()
	require.NoError(t, writer.Close())
	require.Equal(t, acknowledged, readAll(t, w.reader))
}
