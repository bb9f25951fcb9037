// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// checkHeaps requires that a series of heap profiles of one process comes out as
// its in-use values and the differences of its allocations.
func checkHeaps(t *testing.T, payloads [][]byte) {
	t.Helper()
	s := heapSeries()
	total := 0
	at := time.Unix(1_800_000_000, 0)
	for i, payload := range payloads {
		p := parsed(t, payload)
		step := s.advance(t, payload, at.Add(time.Duration(i)*time.Minute))
		require.False(t, step.Restarted, "profile %d", i)
		reading := parsed(t, step.Parts[0].Payload)
		assert.Equal(t, sums(p, inuseTypes...), sums(reading, inuseTypes...), "profile %d", i)
		assert.Equal(t, p.TimeNanos, reading.TimeNanos)
		assert.Equal(t, p.PeriodType, reading.PeriodType)
		assert.Len(t, reading.SampleType, 2)
		if i == 0 {
			require.Len(t, step.Parts, 1, "the first reading is no difference")
			continue
		}
		require.Len(t, step.Parts, 2)
		before := parsed(t, payloads[i-1])
		difference := parsed(t, step.Parts[1].Payload)
		want := minus(sums(p, allocTypes...), sums(before, allocTypes...))
		assert.Equal(t, want, sums(difference, allocTypes...), "profile %d", i)
		assert.Len(t, difference.Sample, len(want), "one sample each")
		assert.Equal(t, before.TimeNanos, difference.TimeNanos, "it begins at the one before")
		assert.Equal(t, p.TimeNanos, difference.TimeNanos+difference.DurationNanos)
		assert.Len(t, difference.SampleType, 2)
		total += len(want)
	}
	assert.NotZero(t, total)
}

func TestDifferencesOfTheCorpus(t *testing.T) {
	var payloads [][]byte
	for _, file := range profiletest.Corpus(t) {
		if strings.Contains(file.Name, "go-heap-series") {
			plain, err := pproftranslator.Decompress(file.Data, 64<<20)
			require.NoError(t, err)
			payloads = append(payloads, plain)
		}
	}
	require.NotEmpty(t, payloads)
	checkHeaps(t, payloads)
}

var kept [][]byte // what TestDifferencesOfThisProcess allocates

func TestDifferencesOfThisProcess(t *testing.T) {
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 64
	defer func() { runtime.MemProfileRate = rate }()
	var payloads [][]byte
	for i := range 3 {
		for range 100 {
			kept = append(kept, make([]byte, 1000+i))
		}
		runtime.GC()
		runtime.GC()
		var taken bytes.Buffer
		require.NoError(t, pprof.Lookup("heap").WriteTo(&taken, 0))
		plain, err := pproftranslator.Decompress(taken.Bytes(), 64<<20)
		require.NoError(t, err)
		payloads = append(payloads, plain)
	}
	kept = nil
	checkHeaps(t, payloads)
}

// grow makes random counters of a process grow, and begin.
func grow(r *rand.Rand, p *profile.Profile) {
	for _, sample := range p.Sample {
		for i := range sample.Value {
			if r.IntN(3) > 0 {
				sample.Value[i] += r.Int64N(1000)
			}
		}
	}
	p.TimeNanos += 1 + r.Int64N(1e12)
}

// Random profiles, with labels of all kinds and samples that are there several
// times, against sums over written-out samples.
func TestDifferencesOfRandomProfiles(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	profiles, rounds := 50, 0
	if full, _ := profiletest.Soak(t); full {
		profiles = 2000
	}
	for range profiles {
		p := profiletest.GeneratePprof(r)
		if len(p.SampleType) == 0 {
			continue
		}
		var counted, rest []string
		for i, sampleType := range p.SampleType {
			sampleType.Type = fmt.Sprintf("inuse_%d", i)
			if i == 0 || r.IntN(2) == 0 {
				sampleType.Type = fmt.Sprintf("alloc_%d", i)
				counted = append(counted, sampleType.Type)
			} else {
				rest = append(rest, sampleType.Type)
			}
		}
		p.DefaultSampleType = ""
		p.TimeNanos = 1_700_000_000_000_000_000
		for _, sample := range p.Sample {
			for i := range sample.Value {
				sample.Value[i] = r.Int64N(1000)
			}
		}
		s := heapSeries()
		s.advance(t, plain(t, p), time.Now())
		for range 4 {
			before := sums(parsed(t, plain(t, p)), counted...)
			grow(r, p)
			payload := plain(t, p)
			now := parsed(t, payload)
			step := s.advance(t, payload, time.Now())
			require.False(t, step.Restarted)
			got := parsed(t, step.Parts[len(step.Parts)-1].Payload)
			require.Equal(t, minus(sums(now, counted...), before), sums(got, counted...))
			if len(rest) > 0 {
				require.Equal(t, sums(now, rest...), sums(parsed(t, step.Parts[0].Payload), rest...))
			}
			for _, part := range step.Parts {
				_, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(part.Payload)
				require.NoError(t, err)
			}
			rounds++
		}
	}
	assert.NotZero(t, rounds)
}
