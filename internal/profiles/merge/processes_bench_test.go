// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// BenchmarkProcesses measures what the table of processes costs: pushes of many processes whose resources become equal, against as many of one
// process. Both merge the same profiles.
func BenchmarkProcesses(b *testing.B) {
	options := &Options{Snapshots: SnapshotsKeep, SnapshotSampleTypes: sampletypes.SnapshotSampleTypes, DropResourceAttributes: []string{"service.instance.id"}}
	stacks := profiletest.CPUPprof("/app", 1e7)
	for i := range 200 {
		f := &profile.Function{ID: uint64(len(stacks.Function) + 1), Name: fmt.Sprint("main.function", i)}
		l := &profile.Location{ID: uint64(len(stacks.Location) + 1), Line: []profile.Line{{Function: f}}}
		stacks.Function, stacks.Location = append(stacks.Function, f), append(stacks.Location, l)
		sample := *stacks.Sample[0]
		sample.Location = append([]*profile.Location{l}, sample.Location...)
		stacks.Sample = append(stacks.Sample, &sample)
	}
	message := profiletest.Pprof(b, stacks)
	const pushes = 256
	payloads := func(processes int) (all []pprofile.Profiles) {
		for n := range pushes {
			pd := unmarshalPprof(b, gunzip(b, message))
			attributes := pd.ResourceProfiles().At(0).Resource().Attributes()
			attributes.PutStr("service.name", "checkout")
			attributes.PutStr("service.instance.id", fmt.Sprint("pod-", n%processes))
			for p := range sampletypes.ProfilesOf(pd) {
				p.SetTime(pcommon.Timestamp(1_800_000_000e9 + n*1e8))
				p.SetDurationNano(1e10)
				var id pprofile.ProfileID
				binary.BigEndian.PutUint64(id[8:], uint64(n+1))
				p.SetProfileID(id)
			}
			all = append(all, pd)
		}
		return all
	}
	merge := func(all []pprofile.Profiles) (pprofile.Profiles, time.Duration) {
		w, start := NewWindow(options), time.Now()
		for _, pd := range all {
			checked, err := Check(pd, options)
			require.NoError(b, err)
			require.NoError(b, w.Add(checked))
		}
		pd := w.Emit("")
		return pd, time.Since(start) / pushes
	}
	sizes := func(pd pprofile.Profiles) (plain, zipped float64) {
		data := profiletest.Proto(b, pd)
		return float64(len(data)), float64(len(profiletest.Gzip(b, data)))
	}
	for _, processes := range []int{10, pushes} {
		var of, one pprofile.Profiles
		const rounds = 30
		least, leastOfOne := time.Hour, time.Hour // of rounds in which both take turns: others have waited for the machine
		for range rounds {
			var push, pushOfOne time.Duration
			of, push = merge(payloads(processes))
			one, pushOfOne = merge(payloads(1))
			least, leastOfOne = min(least, push), min(leastOfOne, pushOfOne)
		}
		plain, zipped := sizes(of)
		plainOfOne, zippedOfOne := sizes(one)
		each := float64((processes - 1) * of.ProfileCount())
		report(b, fmt.Sprint("processes=", processes),
			"µs/push", least.Seconds()*1e6, "table-µs/push", (least-leastOfOne).Seconds()*1e6,
			"B/process", (plain-plainOfOne)/each, "gzip-B/process", (zipped-zippedOfOne)/each)
	}
}
