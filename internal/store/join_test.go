// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// ofType is newPayload with a profile type.
func ofType(name string, id int, start time.Time) pprofile.Profiles {
	pd := newPayload("checkout", id, start, start.Add(time.Second))
	pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().PutStr(attrkey.ProfileType, name)
	return pd
}

func fromPprof(t testing.TB, p *profile.Profile) pprofile.Profiles {
	pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(profiletest.Pprof(t, p))
	require.NoError(t, err)
	return pd
}

// profilesIn returns the Profiles of the records of a closed file, which any program for zstd decompresses.
func profilesIn(t testing.TB, path string) (payloads []pprofile.Profiles) {
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	z, err := zstd.NewReader(file)
	require.NoError(t, err)
	defer z.Close()
	_, err = io.Copy(io.Discard, z)
	require.NoError(t, err)
	for _, data := range profiletest.ReadRecords(t, path) {
		payloads = append(payloads, profiletest.Unmarshal(t, data))
	}
	return payloads
}

// TestAClosedFileHasWhatWasWritten_E16: random payloads are in a file as they were, whatever the types of their scopes, and the index describes
// the records.
func TestAClosedFileHasWhatWasWritten_E16(t *testing.T) {
	for seed := range uint64(profiletest.Rounds(t, 10, 500)) {
		r := profiletest.NewRand(seed)
		d := newDirectory(t)
		var closed []store.ClosedFile
		n := 2 + r.IntN(6)
		w := d.open(func(o *store.Options) {
			o.Rotation.MaxRecords, o.FileClosed = n, func(f store.ClosedFile) { closed = append(closed, f) }
		})
		var want []expand.Profile
		for range n {
			pd := profiletest.GenerateProfiles(r)
			want = append(want, profiletest.Expand(t, pd)...)
			require.NoError(t, w.Append(recordOf(t, d.format, "checkout", pd)))
		}
		require.Len(t, closed, 1)
		require.NoError(t, closed[0].JoinError)
		require.NoError(t, closed[0].IndexError)
		payloads := profilesIn(t, closed[0].Path)
		require.Len(t, payloads, closed[0].Records)
		require.Emptyf(t, expand.Diff(want, profiletest.Expand(t, payloads...)), "seed %d", seed)

		segments, err := openStore(t, d.dir).Since(t.Context(), time.Time{}, nil)
		require.NoError(t, err)
		require.Len(t, segments, 1)
		index, err := segments[0].Index(t.Context())
		require.NoError(t, err)
		require.Len(t, index.Records, len(payloads))
		samples := 0
		for i, pd := range payloads {
			described, err := contents.Describe(pd)
			require.NoError(t, err)
			entry, err := index.Entry(i)
			require.NoError(t, err)
			described.Labels = nil
			require.Equal(t, described, entry)
			samples += entry.Samples
		}
		require.Equal(t, closed[0].Samples, samples)
		require.NoError(t, w.Close())
	}
}

// TestARecordForEachProfileType_E16: what a query of one type reads has no other one, after closing and after compaction.
func TestARecordForEachProfileType_E16(t *testing.T) {
	d := newDirectory(t)
	w := d.open(func(o *store.Options) { o.Rotation.MaxRecords = 30 })
	want := map[int]int{}
	for id := range 30 {
		name := []string{"cpu", "heap", "mutex"}[id%3]
		require.NoError(t, w.Append(recordOf(t, d.format, "checkout", ofType(name, id, d.now.Add(time.Duration(id)*time.Second)))))
		want[id] = 1
	}
	require.NoError(t, w.Close())
	for range 2 {
		names := closedIn(t, d.dir)
		require.Len(t, names, 1)
		payloads := profilesIn(t, filepath.Join(d.dir, names[0]))
		require.Len(t, payloads, 3)
		for _, pd := range payloads {
			types := map[string]bool{}
			for _, rp := range pd.ResourceProfiles().All() {
				for _, sp := range rp.ScopeProfiles().All() {
					of, _ := sp.Scope().Attributes().Get(attrkey.ProfileType)
					types[of.Str()] = true
				}
			}
			require.Len(t, types, 1)
			require.Equal(t, 11, pd.Dictionary().FunctionTable().Len(), "ten, and the zero value")
		}
		require.Equal(t, want, d.counts())
		d.now = d.now.Add(2 * time.Hour)
		require.NoError(t, d.compactor().Run(t.Context()))
	}
}

// TestLargeAndMalformedRecordsStay_E16: a file with a record that cannot be joined is closed as it is, with its index, and that is no error.
func TestLargeAndMalformedRecordsStay_E16(t *testing.T) {
	d := newDirectory(t)
	large := newPayload("checkout", 2, d.now, d.now)
	for range 200_000 { // 12 MiB in memory
		large.Dictionary().LinkTable().AppendEmpty()
	}
	malformed := recordOf(t, d.format, "checkout", newPayload("checkout", 3, d.now, d.now))
	pd := newPayload("checkout", 4, d.now, d.now)
	pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().At(0).SetStackIndex(9)
	malformed.Data = profiletest.Proto(t, pd)
	for name, odd := range map[string]store.Record{"large": recordOf(t, d.format, "checkout", large), "malformed": malformed} {
		t.Run(name, func(t *testing.T) {
			d := newDirectory(t)
			var closed store.ClosedFile
			w := d.open(func(o *store.Options) {
				o.Rotation.MaxRecords, o.FileClosed = 2, func(f store.ClosedFile) { closed = f }
			})
			one := newRecord(t, d.format, "checkout", 1, d.now, d.now)
			require.NoError(t, w.Append(one))
			require.NoError(t, w.Append(odd))
			require.NoError(t, closed.JoinError)
			require.NoError(t, closed.IndexError)
			require.Equal(t, [][]byte{one.Data, odd.Data}, profiletest.ReadRecords(t, closed.Path))
			require.NoError(t, w.Close())
		})
	}
}

// TestJoinedRecordsAreNotLarge_E16: records that would take much memory together, or be more than a gRPC server accepts, become several.
func TestJoinedRecordsAreNotLarge_E16(t *testing.T) {
	d := newDirectory(t)
	var closed store.ClosedFile
	const n = 12
	w := d.open(func(o *store.Options) {
		o.Rotation.MaxRecords, o.FileClosed = n, func(f store.ClosedFile) { closed = f }
	})
	want := map[int]int{}
	for id := range n {
		pd := newPayload("checkout", id, d.now, d.now)
		pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).OriginalPayload().FromRaw(make([]byte, 1<<20))
		require.NoError(t, w.Append(recordOf(t, d.format, "checkout", pd)))
		want[id] = 1
	}
	require.NoError(t, closed.JoinError)
	require.Equal(t, n/2, closed.Records, "two of one MiB and a rest in three")
	for _, data := range profiletest.ReadRecords(t, closed.Path) {
		require.LessOrEqual(t, store.DecodedSize(segment.Proto, data), int64(segment.MaxRecordMemory))
		require.Less(t, len(data), 4<<20)
	}
	require.Equal(t, want, d.counts())
	require.NoError(t, w.Close())
}

// TestRecordsOfAGroupDoNotWaitForClosing_E16: while a file is joined, the next one is written.
func TestRecordsOfAGroupDoNotWaitForClosing_E16(t *testing.T) {
	d := newDirectory(t)
	w := d.open(func(o *store.Options) { o.Rotation.MaxRecords = 2 })
	joining, proceed := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	d.process.before = func(call string) error {
		if strings.HasPrefix(call, "Replace ") && first.CompareAndSwap(false, true) {
			d.process.mu.Unlock()
			close(joining)
			<-proceed
			d.process.mu.Lock()
		}
		return nil
	}
	add := func(id int) error { return w.Append(newRecord(t, d.format, "checkout", id, d.now, d.now)) }
	require.NoError(t, add(1))
	done := make(chan error)
	go func() { done <- add(2) }()
	<-joining
	require.NoError(t, add(3))
	w.Tick()
	require.Equal(t, once(1, 2, 3), d.counts(), "a reader sees the file that is being joined")
	close(proceed)
	require.NoError(t, <-done)
	require.NoError(t, w.Close())
	require.Equal(t, once(1, 2, 3), d.counts())
}

// TestFilesAreClosedAsTheyAreAtTheEnd_E16: the end of a process does not wait for the records of many files to be joined.
func TestFilesAreClosedAsTheyAreAtTheEnd_E16(t *testing.T) {
	d := newDirectory(t)
	want := map[int]int{}
	var joined atomic.Int32
	w := d.open(func(o *store.Options) {
		o.FileClosed = func(f store.ClosedFile) {
			if f.Records == 1 {
				joined.Add(1)
			}
		}
	})
	d.process.before = func(call string) error {
		if strings.HasPrefix(call, "Replace ") {
			w.EndSoon()
		}
		return nil
	}
	for id := range 30 {
		require.NoError(t, w.Append(newRecord(t, d.format, fmt.Sprint("service-", id%10), id, d.now, d.now)))
		want[id] = 1
	}
	d.now = d.now.Add(time.Hour)
	w.CloseDue()
	require.Len(t, closedIn(t, d.dir), 10)
	require.Contains(t, []int32{1, 2}, joined.Load(), "those that had begun")
	require.NoError(t, w.Close())
	require.Equal(t, want, d.counts())
}

// TestAnIndexOfAFileThatWasJoined_A4: the records of an index are not read from the file that took the name of its own. Readers list again.
func TestAnIndexOfAFileThatWasJoined_A4(t *testing.T) {
	d := newDirectory(t)
	w := d.open()
	for id := range 3 {
		require.NoError(t, w.Append(newRecord(t, d.format, "checkout", id, d.now, d.now)))
	}
	s := openStore(t, d.dir)
	segments, err := s.Since(t.Context(), time.Time{}, nil)
	require.NoError(t, err)
	require.Len(t, segments, 1)
	index, err := segments[0].Index(t.Context())
	require.NoError(t, err)
	d.now = d.now.Add(time.Hour)
	w.CloseDue()
	for _, err := range segments[0].Records(t.Context(), index, index.Records) {
		require.ErrorIs(t, err, store.ErrGone)
	}
	index, err = segments[0].Index(t.Context())
	require.NoError(t, err, "the name of the list still leads to the file")
	counts := map[int]int{}
	for data, err := range segments[0].Records(t.Context(), index, index.Records) {
		require.NoError(t, err)
		countIDs(t, counts, d.format, data)
	}
	require.Equal(t, once(0, 1, 2), counts)
	require.NoError(t, w.Close())
}

// TestACrashOrFaultAtAnyStepOfClosing_E1: at each call of the file system while a file is joined and closed, the process is killed, or that call fails.
// Nothing is lost, doubled or left.
func TestACrashOrFaultAtAnyStepOfClosing_E1(t *testing.T) {
	for _, fault := range []error{errKilled, syscall.EIO, syscall.ENOSPC} {
		for at := 0; ; at++ {
			d := newDirectory(t)
			w := d.open(func(o *store.Options) { o.Failed, o.Sync = func(error) {}, store.SyncRecord })
			for id := range 4 {
				require.NoError(t, w.Append(newRecord(t, d.format, "checkout", id, d.now, d.now)))
			}
			calls, hit := 0, ""
			d.process.before = func(call string) error {
				if calls++; calls == at+1 {
					hit = call
					return fault
				}
				return nil
			}
			d.now = d.now.Add(time.Hour)
			w.CloseDue()
			require.Equal(t, once(0, 1, 2, 3), d.counts(), "%v of %s", fault, hit)
			d.process.before = nil
			if errors.Is(fault, errKilled) && hit != "" {
				d.process = &process{}
				w = d.open()
			}
			w.Maintain()
			require.NoError(t, w.Close())
			require.Equal(t, once(0, 1, 2, 3), d.counts(), "%v of %s", fault, hit)
			names := paths(t, d.dir)
			require.Len(t, names, 1, "%v of %s", fault, hit)
			f, ok := layout.ParsePath(names[0])
			require.True(t, ok && !f.Partial, names)
			if hit == "" {
				require.Greater(t, at, 8)
				break
			}
		}
	}
}

// BenchmarkClose closes files of records of one program, and reports the bytes before and after.
func BenchmarkClose(b *testing.B) {
	workload := profiletest.Workloads()[0]
	workload.Samples, workload.Functions = 2000, 500
	record := recordOf(b, segment.Proto, "checkout", fromPprof(b, workload.Pprof(1)))
	for _, records := range []int{10, 100} {
		b.Run(fmt.Sprint(records, " records"), func(b *testing.B) {
			var before, after int64
			w, err := store.OpenWriter(store.Options{
				Directory: b.TempDir(), Format: segment.Proto, MaxOpen: 10, Rotation: store.Rotation{MaxRecords: records},
				RecordWritten: func(_ store.Record, stored int64, _ bool) { before += stored },
				FileClosed:    func(f store.ClosedFile) { after += f.Size },
				Failed:        func(err error) { b.Error(err) },
			})
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				for range records {
					require.NoError(b, w.Append(record))
				}
			}
			require.NoError(b, w.Close())
			b.ReportMetric(float64(after)/float64(before), "bytes/before")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*records), "µs/record")
		})
	}
}
