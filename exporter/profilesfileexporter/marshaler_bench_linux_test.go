// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"golang.org/x/sys/unix"
)

// BenchmarkMarshal compares marshalling a payload for a file with an index to pdata's marshaler, in turns.
// The times are those of the thread, so that other processes take no part; ratio is that of the lowest tenths, which other load changes least.
func BenchmarkMarshal(b *testing.B) {
	for _, bm := range []struct {
		name                         string
		resources, profiles, samples int
		snapshots                    bool
	}{
		{"cpu", 1, 2, 600, false},
		{"large", 1, 2, 5000, false},
		{"gateway", 100, 2, 100, false},
		{"tiny", 1, 2000, 1, false},
		{"services", 2000, 1, 1, false},
		{"snapshots", 2000, 1, 1, true},
	} {
		b.Run(bm.name, func(b *testing.B) {
			pd := payload(bm.resources, bm.profiles, bm.samples, bm.snapshots)
			var with, bare []int64
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for b.Loop() {
				fresh := pprofile.NewProfiles()
				pd.CopyTo(fresh)
				start := threadTime(b)
				_, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(fresh)
				bare = append(bare, threadTime(b)-start)
				require.NoError(b, err)

				fresh = pprofile.NewProfiles()
				pd.CopyTo(fresh)
				start = threadTime(b)
				_, err = marshal(&pprofile.ProtoMarshaler{}, fresh)
				with = append(with, threadTime(b)-start)
				require.NoError(b, err)
			}
			slices.Sort(bare)
			slices.Sort(with)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(bare[len(bare)/10]), "ns/bare")
			b.ReportMetric(float64(with[len(with)/10])/float64(bare[len(bare)/10]), "ratio")
		})
	}
}

// threadTime returns the processor time of the thread in nanoseconds.
func threadTime(b *testing.B) int64 {
	b.Helper()
	var t unix.Timespec
	require.NoError(b, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t))
	return t.Nano()
}

func payload(resources, profiles, samples int, snapshots bool) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	dict := pd.Dictionary()
	dict.StringTable().Append("", "samples", "count", "cpu", "nanoseconds", "inuse_space", "bytes", "thread.name")
	for range samples {
		dict.StackTable().AppendEmpty().LocationIndices().Append(1, 2, 3)
	}
	types := [][2]int32{{1, 2}, {3, 4}}
	if snapshots {
		types = [][2]int32{{5, 6}}
	}
	for r := range resources {
		rp := pd.ResourceProfiles().AppendEmpty()
		a := rp.Resource().Attributes()
		a.PutStr("service.name", fmt.Sprint("service-", r))
		a.PutStr("service.version", "1.2.3")
		a.PutStr("host.name", fmt.Sprint("host-", r))
		a.PutStr("deployment.environment.name", "production")
		a.PutInt("process.pid", int64(r))
		sp := rp.ScopeProfiles().AppendEmpty()
		sp.Scope().SetName("github.com/google/pprof")
		for i := range profiles {
			p := sp.Profiles().AppendEmpty()
			p.SampleType().SetTypeStrindex(types[i%len(types)][0])
			p.SampleType().SetUnitStrindex(types[i%len(types)][1])
			p.SetTime(pcommon.Timestamp(1_700_000_000_000_000_000 + r*1000))
			if !snapshots {
				p.SetDurationNano(10e9)
			}
			for s := range samples {
				sample := p.Samples().AppendEmpty()
				sample.SetStackIndex(int32(s))
				sample.AttributeIndices().Append(1, int32(s%7))
				sample.Values().Append(int64(1+s) * 10_000_000)
			}
		}
	}
	return pd
}
