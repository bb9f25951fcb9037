// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/lake"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
	"github.com/otelcol-profiles/otelcol-profiles/translator/foldedtranslator"
)

// fleetBegin is the first minute of the fleet, fleetTrace the trace of cart's samples.
var (
	fleetBegin = time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)
	fleetTrace = pcommon.TraceID{0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36}
)

const fleetMinutes = 30

// fleetProfile is a profile of a process: of CPU time in milliseconds, or of a heap in KiB.
type fleetProfile struct {
	service, version, instance string
	start                      time.Time
	duration                   time.Duration // 0 is a heap
	folded                     string
	traced                     bool
}

func (m *fleetProfile) payload(t testing.TB) pprofile.Profiles {
	t.Helper()
	pd := pprofile.NewProfiles()
	if m.folded != "" {
		var err error
		pd, err = (&foldedtranslator.Unmarshaler{}).UnmarshalProfiles([]byte(m.folded))
		require.NoError(t, err)
	} else { // an interval without samples
		pd.Dictionary().StringTable().Append("")
		pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	}
	rp, dict := pd.ResourceProfiles().At(0), pd.Dictionary()
	rp.Resource().Attributes().PutStr("service.name", m.service)
	rp.Resource().Attributes().PutStr("service.version", m.version)
	rp.Resource().Attributes().PutStr("service.instance.id", m.instance)
	texts, unit := []string{"cpu", "nanoseconds"}, int64(time.Millisecond)
	if m.duration == 0 {
		texts, unit = []string{"inuse_space", "bytes"}, 1<<10
	}
	rp.ScopeProfiles().At(0).Scope().Attributes().PutStr(attrkey.ProfileType, map[bool]string{false: "heap", true: "cpu"}[m.duration > 0])
	p := rp.ScopeProfiles().At(0).Profiles().At(0)
	p.SetTime(pcommon.NewTimestampFromTime(m.start))
	p.SetDurationNano(uint64(m.duration))
	first := int32(dict.StringTable().Len())
	dict.StringTable().Append(texts...)
	p.SampleType().SetTypeStrindex(first)
	p.SampleType().SetUnitStrindex(first + 1)
	if m.traced {
		for dict.LinkTable().Len() < 2 {
			dict.LinkTable().AppendEmpty()
		}
		link := dict.LinkTable().At(1)
		link.SetTraceID(fleetTrace)
		link.SetSpanID([8]byte{1})
	}
	for _, s := range p.Samples().All() {
		s.Values().SetAt(0, s.Values().At(0)*unit)
		if m.traced {
			s.SetLinkIndex(1)
		}
	}
	return pd
}

// fleet is half an hour: three processes of version 1.9 and two of 2.0 of checkout, profiled all the time, and one of cart, profiled for ten
// seconds of each minute, of which every third has no sample. One process of checkout has a heap that grows.
func fleet(begin time.Time) (all []fleetProfile) {
	for minute := range fleetMinutes {
		at := begin.Add(time.Duration(minute) * time.Minute)
		for pod := range 5 {
			m := fleetProfile{service: "checkout", version: "1.9", instance: fmt.Sprint("pod-", pod), start: at, duration: time.Minute}
			m.folded = fmt.Sprintf("main;handle;json.Marshal %d\nmain;handle;parse %d\n", 6000, 18000+minute%7)
			if pod >= 3 {
				m.version, m.folded = "2.0", fmt.Sprintf("main;handle;json.Marshal %d\nmain;handle;parse %d\n", 15000, 12000+minute%5)
			}
			all = append(all, m)
			heap := m
			heap.duration, heap.folded = 0, fmt.Sprintf("main;cache %d\nmain;buffers %d\n", 100<<10, 2048+minute%3)
			if pod == 1 {
				heap.folded = fmt.Sprintf("main;cache %d\nmain;buffers 2048\n", (100+2*minute)<<10)
			}
			all = append(all, heap)
		}
		m := fleetProfile{service: "cart", version: "7", instance: "cart-0", start: at.Add(7 * time.Second), duration: 10 * time.Second, traced: minute == 3}
		if minute%3 != 2 {
			m.folded = "main;add;json.Marshal 3000\nmain;remove 1500\n"
		}
		all = append(all, m)
	}
	return all
}

// writeFleet writes profiles as the exporter does, and compacts their hours to segments and Parquet files.
func writeFleet(t testing.TB, directory string, all []fleetProfile) {
	t.Helper()
	now := all[0].start
	w, err := store.OpenWriter(store.Options{
		Directory: directory, Format: segment.Proto, MaxOpen: 10, Now: func() time.Time { return now }, Failed: func(err error) { require.NoError(t, err) },
	})
	require.NoError(t, err)
	for i := range all {
		m := &all[i]
		now = m.start.Add(m.duration)
		pd := m.payload(t)
		entry, err := contents.Describe(pd)
		require.NoError(t, err)
		group := []string{layout.GroupDir("service.name", layout.GroupName(m.service))}
		require.NoError(t, w.Append(store.Record{Data: profiletest.Proto(t, pd), Group: group, Entry: entry}))
	}
	require.NoError(t, w.Close())
	compactor := compact.New(compact.Options{
		Directory: directory, After: time.Minute, Resolutions: []time.Duration{time.Minute}, MaxMemory: 64 << 20, Compacted: func(compact.Result) {},
		Skipped: func(path string, err error) { require.NoError(t, err, path) }, Damaged: func(path string) { require.Fail(t, path) },
		Now: func() time.Time { return all[0].start.Add(26 * time.Hour) },
		Parquet: &compact.Parquet{
			Written: func(string, lake.Written) {}, Removed: func(string, int64) {},
			LeftOut: func(partition string, err error) { require.NoError(t, err, partition) },
		},
	})
	require.NoError(t, compactor.Run(t.Context()))
}

// foldedOf returns the values of the selected stacks, as otelprof writes them.
func foldedOf(t *testing.T, arguments ...string) map[string]float64 {
	t.Helper()
	code, out, errs, _ := otelprof(t, append([]string{"convert", "--format", "folded"}, arguments...)...)
	require.Zero(t, code, errs)
	values := map[string]float64{}
	for line := range strings.Lines(out) {
		at := strings.LastIndexByte(line, ' ')
		var value float64
		_, err := fmt.Sscan(line[at:], &value)
		require.NoError(t, err)
		values[line[:at]] += value
	}
	return values
}
