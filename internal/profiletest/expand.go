// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// Expand writes out the Profiles of payloads.
func Expand(tb testing.TB, payloads ...pprofile.Profiles) (all []expand.Profile) {
	tb.Helper()
	for _, pd := range payloads {
		expanded, err := expand.Profiles(pd)
		require.NoError(tb, err)
		all = append(all, expanded...)
	}
	return all
}

// Build returns the payload of what Expand writes out.
func Build(tb testing.TB, profiles ...expand.Profile) pprofile.Profiles {
	tb.Helper()
	pd, err := expand.Build(profiles)
	require.NoError(tb, err)
	return pd
}

// Pprof returns the message of p without compression.
func Pprof(tb testing.TB, p *profile.Profile) []byte {
	tb.Helper()
	var message bytes.Buffer
	require.NoError(tb, p.WriteUncompressed(&message))
	return message.Bytes()
}

// AllocatedBy is how many bytes the whole process allocates during work.
func AllocatedBy(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Heap is how many bytes live objects take.
func Heap() int64 {
	for range 3 { // the first two empty the pools
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
