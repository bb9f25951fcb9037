// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// BenchmarkLive lists all of a store. Ten times the files take at most 12 times as long.
func BenchmarkLive(b *testing.B) {
	for _, files := range []int{5_000, 50_000} {
		b.Run(fmt.Sprint(files, " files"), func(b *testing.B) {
			dir := b.TempDir()
			const each = 50 // files of an hour
			for i := range files {
				hour := begin.Add(time.Duration(i/each) * time.Hour)
				stem := fmt.Sprintf("%s-%012x", hour.Format(layout.CreatedTime), i)
				bounds := layout.Bounds{Start: uint64(hour.UnixNano()), End: uint64(hour.Add(time.Minute).UnixNano())}
				name := filepath.Join(dir, "service.name=checkout", hour.Format(layout.HourPath), layout.WrittenBase(stem, &bounds, segment.Proto))
				if i%each == 0 {
					require.NoError(b, os.MkdirAll(filepath.Dir(name), 0o700))
				}
				require.NoError(b, os.WriteFile(name, nil, 0o600))
			}
			s := openStore(b, dir)
			for b.Loop() {
				segments, err := s.Live(b.Context(), begin, begin.AddDate(1, 0, 0), nil)
				require.NoError(b, err)
				require.Len(b, segments, files)
			}
		})
	}
}

// BenchmarkAppend writes tiny records of several groups in turn: with more groups than open files, each opens its file again. BenchmarkGroups
// of the program says what that is of a whole push.
func BenchmarkAppend(b *testing.B) {
	for _, groups := range []int{16, 160} {
		b.Run(fmt.Sprint(groups, " groups, 50 open files"), func(b *testing.B) {
			w, err := store.OpenWriter(store.Options{
				Directory: b.TempDir(), Format: segment.Proto, MaxOpen: 50, Now: func() time.Time { return begin }, Failed: func(err error) { b.Error(err) },
			})
			require.NoError(b, err)
			records := make([]store.Record, groups)
			for i := range records {
				records[i] = newRecord(b, segment.Proto, fmt.Sprint("service-", i), i, begin, begin)
				require.NoError(b, w.Append(records[i]))
			}
			i := 0
			for b.Loop() {
				if err := w.Append(records[i%groups]); err != nil {
					b.Fatal(err)
				}
				i++
			}
			require.NoError(b, w.Close())
		})
	}
}

// BenchmarkTenServices writes what ten services push in two hours, compacts it, and reports how much a day of it takes, and how many days
// 1 GiB holds. Each half minute a service has a CPU profile of 300 of its 2,000 stacks, and a heap of 500.
func BenchmarkTenServices(b *testing.B) {
	const services, hours, every = 10, 2, 30 * time.Second
	d := &directory{dir: b.TempDir(), now: begin, process: &process{}, format: segment.Proto}
	programs := make([]*profile.Profile, services)
	for i := range programs {
		programs[i] = profiletest.Workloads()[0].Pprof(uint64(i))
	}
	random := profiletest.NewRand(1)
	w, err := store.OpenWriter(store.Options{
		Directory: d.dir, Format: segment.Proto, MaxOpen: services, Now: func() time.Time { return d.now }, Failed: func(err error) { b.Error(err) },
		Rotation: store.Rotation{MaxAge: 15 * time.Minute},
	})
	require.NoError(b, err)
	for ; d.now.Before(begin.Add(hours * time.Hour)); d.now = d.now.Add(every) {
		w.CloseDue()
		for i, p := range programs {
			window := merge.NewWindow(&benchWindow)
			for _, heap := range []bool{false, true} {
				payload, err := merge.Check(part(b, random, p, fmt.Sprint("service-", i), heap, d.now), &benchWindow)
				require.NoError(b, err)
				require.NoError(b, window.Add(payload))
			}
			pd := window.Emit("")
			entry, err := contents.Describe(pd)
			require.NoError(b, err)
			group := []string{layout.GroupDir("service.name", fmt.Sprint("service-", i))}
			require.NoError(b, w.Append(store.Record{Data: profiletest.Proto(b, pd), Group: group, Entry: entry}))
		}
	}
	w.CloseDue() // the hour is over
	require.NoError(b, w.Close())
	report := func(unit string) {
		size := int64(0)
		for _, name := range paths(b, d.dir) {
			info, err := os.Stat(filepath.Join(d.dir, name))
			require.NoError(b, err)
			size += info.Size()
		}
		day := float64(size) * 24 / hours
		b.ReportMetric(day/1e6, unit+"-MB/day")
		b.ReportMetric((1<<30)/day, unit+"-days/GiB")
	}
	report("written")
	c := compact.New(compact.Options{
		Directory: d.dir, After: time.Hour, Resolutions: []time.Duration{time.Minute, 10 * time.Minute}, MaxMemory: 256 << 20,
		Compacted: func(compact.Result) {}, Skipped: func(path string, err error) { b.Error(path, err) }, Damaged: func(path string) { b.Error(path) },
		Now: func() time.Time { return d.now },
	})
	d.now = begin.Add((hours + 2) * time.Hour)
	require.NoError(b, c.Run(b.Context()))
	report("hours")
	d.now = begin.Add(26 * time.Hour)
	require.NoError(b, c.Run(b.Context()))
	report("days")
	b.ReportMetric(0, "ns/op")
}

var benchWindow = merge.Options{SlotLength: 30 * time.Second, Snapshots: merge.SnapshotsKeep, SnapshotSampleTypes: sampletypes.SnapshotSampleTypes}

// part returns some of the samples of a program, with values of this moment.
func part(b *testing.B, random *rand.Rand, program *profile.Profile, service string, heap bool, at time.Time) pprofile.Profiles {
	p, n := program.Copy(), 300
	if heap {
		n = 500
		p.SampleType = []*profile.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}}
		p.PeriodType, p.DurationNanos = &profile.ValueType{Type: "space", Unit: "bytes"}, 0
	}
	p.TimeNanos = at.UnixNano() - p.DurationNanos
	random.Shuffle(len(p.Sample), func(i, j int) { p.Sample[i], p.Sample[j] = p.Sample[j], p.Sample[i] })
	p.Sample = p.Sample[:n]
	for _, s := range p.Sample {
		s.Value[0], s.Value[1] = 1+int64(random.IntN(4)), 10_000_000*(1+int64(random.IntN(4)))
	}
	pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(profiletest.Pprof(b, p.Compact()))
	require.NoError(b, err)
	for _, rp := range pd.ResourceProfiles().All() {
		rp.Resource().Attributes().PutStr("service.name", service)
	}
	return pd
}
