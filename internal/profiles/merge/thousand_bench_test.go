// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// merger is a way to merge payloads into one, with what it has taken so far.
type merger struct {
	name   string
	add    func(pd pprofile.Profiles) // may take pd over
	result func() pprofile.Profiles

	time    time.Duration
	bytes   uint64 // allocated
	objects uint64
}

func (m *merger) measure(f func()) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	f()
	m.time += time.Since(begin)
	runtime.ReadMemStats(&after)
	m.bytes += after.TotalAlloc - before.TotalAlloc
	m.objects += after.Mallocs - before.Mallocs
}

func mergers(b *testing.B) []*merger {
	w := NewWindow(defaultOptions())
	all := pprofile.NewProfiles()
	// As in a binary counter, runs[i] is nil or 1<<i payloads merged.
	var runs []*pprofile.Profiles
	return []*merger{{
		name:   "window",
		add:    func(pd pprofile.Profiles) { require.NoError(b, add(w, pd)) },
		result: func() pprofile.Profiles { return w.Emit("") },
	}, {
		name:   "MergeTo",
		add:    func(pd pprofile.Profiles) { require.NoError(b, pd.MergeTo(all)) },
		result: func() pprofile.Profiles { return all },
	}, {
		name: "MergeTo in pairs",
		add: func(pd pprofile.Profiles) {
			i := 0
			for ; i < len(runs) && runs[i] != nil; i++ {
				require.NoError(b, pd.MergeTo(*runs[i]))
				pd, runs[i] = *runs[i], nil
			}
			if i == len(runs) {
				runs = append(runs, nil)
			}
			runs[i] = &pd
		},
		result: func() pprofile.Profiles {
			pd := pprofile.NewProfiles()
			for _, run := range runs {
				if run != nil {
					require.NoError(b, pd.MergeTo(*run))
					pd = *run
				}
			}
			return pd
		},
	}}
}

// BenchmarkMergeThousand merges a thousand pushes, of CPU and heap profiles in turn, by a window and by pdata's
// MergeTo. They get copies of the same, one after the other; making these is not counted.
func BenchmarkMergeThousand(b *testing.B) {
	var cpu, heap []pprofile.Profiles
	for _, of := range benchmarks(b) {
		switch {
		case slices.Contains([]string{"go-cpu-crc32.pb", "go-cpu-unsymbolized.pb", "go-fgprof.pb.gz"}, of.name):
			cpu = append(cpu, unmarshalPprof(b, of.messages[0]))
		case strings.HasPrefix(of.name, "go-heap-series/"):
			heap = append(heap, unmarshalPprof(b, of.messages[0]))
		}
	}
	if len(cpu) == 0 || len(heap) == 0 {
		return // there is no corpus
	}
	for _, services := range []int{1, 50} {
		push := func(n int) pprofile.Profiles {
			profiles, service, round := cpu, n/2%services, n/2/services
			if n%2 == 1 {
				profiles = heap
			}
			pd := pprofile.NewProfiles()
			profiles[(service+round)%len(profiles)].CopyTo(pd)
			stampPush(pd, n, service)
			return pd
		}
		contestants := mergers(b)
		for n := range 1000 {
			for _, m := range contestants {
				pd := push(n)
				m.measure(func() { m.add(pd) })
			}
		}
		var ours, plain, zipped float64
		for _, m := range contestants {
			var merged pprofile.Profiles
			m.measure(func() { merged = m.result() })
			data := profiletest.Proto(b, merged)
			ms, size, gzip := m.time.Seconds()*1e3, float64(len(data)), float64(len(profiletest.Gzip(b, data)))
			if ours == 0 {
				ours, plain, zipped = ms, size, gzip
			}
			report(b, fmt.Sprintf("services=%d/by=%s", services, m.name),
				"ms", ms, "window/ms", ours/ms, "allocated-B", float64(m.bytes), "allocs", float64(m.objects),
				"plain-B", size, "window/plain", plain/size, "gzip-B", gzip, "window/gzip", zipped/gzip)
		}
	}
}

// stampPush makes a payload the nth push, at a time of its own, of a service whose code is its own apart from the
// runtime.
func stampPush(pd pprofile.Profiles, n, service int) {
	for _, rp := range pd.ResourceProfiles().All() {
		rp.Resource().Attributes().PutStr("service.name", fmt.Sprint("service-", service))
	}
	texts := pd.Dictionary().StringTable()
	for _, f := range pd.Dictionary().FunctionTable().All() {
		if name := texts.At(int(f.NameStrindex())); name != "" && !strings.HasPrefix(name, "runtime") {
			texts.Append(fmt.Sprintf("service%d/%s", service, name))
			f.SetNameStrindex(int32(texts.Len() - 1))
		}
	}
	for p := range sampletypes.ProfilesOf(pd) {
		var id pprofile.ProfileID
		binary.BigEndian.PutUint64(id[8:], uint64(n+1))
		p.SetProfileID(id)
		p.SetTime(pcommon.NewTimestampFromTime(time.Unix(1_800_000_000+int64(n), 0)))
	}
}
