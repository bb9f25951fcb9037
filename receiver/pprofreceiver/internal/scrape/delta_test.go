// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/section"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// Sample types of heap profiles start with these.
const (
	allocated = "alloc_"
	inUse     = "inuse_"
)

// series ingests the scrapes of one profile type of one target.
type series struct {
	t       testing.TB
	scraper *Scraper
	logs    *observer.ObservedLogs
	answer  error // of the next consumer

	received []pprofile.Profiles // of the last scrape
}

func newSeries(t testing.TB, profileType string, change func(*Config)) *series {
	t.Helper()
	s := &series{t: t}
	next, err := xconsumer.NewProfiles(func(_ context.Context, pd pprofile.Profiles) error {
		if _, isTest := t.(*testing.T); isTest {
			profiletest.RequireConforms(t, pd)
		}
		if s.answer == nil {
			s.received = append(s.received, pd)
		}
		return s.answer
	}, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	require.NoError(t, err)
	ingester := ingest.New(ingest.Settings{
		Logger:      zap.NewNop(),
		Unmarshaler: &pproftranslator.Unmarshaler{Limits: pproftranslator.Limits{DecompressedSize: 64 << 20}},
		Metrics: ingest.Metrics{
			PayloadSize: noop.Int64Counter{}, TranslationDuration: noop.Float64Histogram{},
			Repairs:    noop.Int64Counter{},
			Attributes: metric.WithAttributes(),
		},
	}, next)
	config := DefaultConfig()
	config.Targets = []Target{{Endpoint: "http://a", Profiles: []string{profileType}}}
	if change != nil {
		change(&config)
	}
	telemetry, _, logs := profiletest.Observe(t)
	s.logs = logs
	metrics, err := section.NewTelemetry(telemetry, component.NewID(metadata.Type))
	require.NoError(t, err)
	s.scraper = New(config, section.Settings{InFlight: budget.New(256 << 20), Telemetry: telemetry, Metrics: metrics}, ingester)
	require.NoError(t, s.scraper.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, s.scraper.Shutdown(t.Context())) // only what Start makes is needed
	require.Len(t, s.scraper.jobs, 1)
	return s
}

// try ingests a profile that was fetched at this time.
func (s *series) try(payload []byte, at time.Time) error {
	s.t.Helper()
	s.received = nil
	lease := s.scraper.settings.InFlight.Lease(-1)
	defer lease.Release()
	d := deltaScrape{Scraper: s.scraper, job: s.scraper.jobs[0], lease: lease, body: payload, at: at}
	return d.ingest(s.t.Context(), s.t.Context())
}

func (s *series) scrape(payload []byte, at time.Time) []received {
	s.t.Helper()
	require.NoError(s.t, s.try(payload, at))
	return s.all()
}

func (s *series) restarts() int {
	return s.logs.FilterMessage("Target restarted; delta baseline reset").Len()
}

// received is a Profile that the next consumer received.
type received struct {
	sampleType, temporality string
	start, end              int64
	sum                     int64
}

func (s *series) all() (all []received) {
	for _, p := range profiletest.Expand(s.t, s.received...) {
		r := received{sampleType: p.Type, temporality: expand.Text(p.Attributes, attrkey.Temporality), start: int64(p.Time), end: int64(p.Time + p.Duration)}
		for _, sample := range p.Samples {
			r.sum += sample.Sum.Int64()
		}
		all = append(all, r)
	}
	return all
}

// sums are the values of sample types with this prefix by identity, without zeros.
func sums(profiles []expand.Profile, prefix string) map[string]int64 {
	found := map[string]int64{}
	for _, p := range expand.Normalize(profiles, expand.AsPprof) {
		for _, sample := range p.Samples {
			if strings.HasPrefix(p.Type, prefix) {
				found[p.Type+" "+sample.Identity()] += sample.Sum.Int64()
			}
		}
	}
	maps.DeleteFunc(found, func(_ string, n int64) bool { return n == 0 })
	return found
}

func parsed(t *testing.T, payload []byte) *profile.Profile {
	t.Helper()
	p, err := profile.ParseData(payload)
	require.NoError(t, err)
	require.NoError(t, p.CheckValid())
	return p
}

// requireDeltas checks the deltas of heap profiles of one process against google/pprof.
func requireDeltas(t *testing.T, payloads [][]byte) {
	t.Helper()
	s := newSeries(t, "heap", nil)
	at := time.Unix(1_800_000_000, 0)
	last, total := map[string]int64{}, 0
	start := int64(0)
	for i, payload := range payloads {
		p := parsed(t, payload)
		got := s.scrape(payload, at.Add(time.Duration(i)*time.Minute))
		require.Zero(t, s.restarts(), "profile %d: %v", i, s.logs.All())
		assert.Equal(t, sums(expand.Pprof(p), inUse), sums(profiletest.Expand(t, s.received...), inUse), "profile %d", i)
		counters := sums(expand.Pprof(p), allocated)
		want := map[string]int64{}
		for key, n := range counters {
			if i > 0 && n != last[key] { // there is no delta of the first one
				want[key] = n - last[key]
			}
		}
		assert.Equal(t, want, sums(profiletest.Expand(t, s.received...), allocated), "profile %d", i)
		total += len(want)
		for _, r := range got {
			assert.Equal(t, p.TimeNanos, r.end)
			if strings.HasPrefix(r.sampleType, inUse) {
				assert.Equal(t, "instant", r.temporality)
				assert.Equal(t, p.TimeNanos, r.start)
			} else {
				assert.Equal(t, "delta", r.temporality)
				assert.Equal(t, start, r.start, "it starts at the one before")
			}
		}
		last, start = counters, p.TimeNanos
	}
	assert.NotZero(t, total)
}

func TestDeltasOfTheCorpus(t *testing.T) {
	var payloads [][]byte
	for _, file := range profiletest.Corpus(t) {
		if strings.Contains(file.Name, "go-heap-series") {
			payloads = append(payloads, file.Data)
		}
	}
	require.NotEmpty(t, payloads)
	requireDeltas(t, payloads)
}

func TestDeltasOfRandomProfiles(t *testing.T) {
	r := rand.New(rand.NewPCG(profiletest.Seed(t), 0))
	for range profiletest.Rounds(t, 50, 2000) {
		p := profiletest.GeneratePprof(r)
		if len(p.SampleType) == 0 || len(p.Sample) == 0 {
			continue
		}
		for i, sampleType := range p.SampleType {
			sampleType.Type = fmt.Sprint(inUse, i)
			if i == 0 || r.IntN(2) == 0 {
				sampleType.Type = fmt.Sprint(allocated, i)
			}
		}
		p.DefaultSampleType = ""
		p.TimeNanos, p.DurationNanos = 1_700_000_000_000_000_000, 0
		var payloads [][]byte
		for n := range 5 {
			for _, sample := range p.Sample {
				delete(sample.NumLabel, "end_timestamp_ns")
				for i := range sample.Value {
					if n == 0 {
						sample.Value[i] = r.Int64N(1000)
					}
					sample.Value[i] += r.Int64N(3) * r.Int64N(1000)
				}
			}
			p.TimeNanos += 1 + r.Int64N(int64(2*time.Minute))
			payloads = append(payloads, profiletest.Pprof(t, p))
		}
		requireDeltas(t, payloads)
	}
}

// A counter that is less, or a mapping that has moved, is another process: there is no
// delta from the old one to the new one.
func TestRestartsAreDetected(t *testing.T) {
	for name, test := range map[string]struct {
		change    func(p *profile.Profile)
		restarted bool
	}{
		"less in use":     {func(p *profile.Profile) { p.Sample[0].Value[2]-- }, false},
		"less":            {func(p *profile.Profile) { p.Sample[0].Value[1] = 999 }, true},
		"moved in memory": {func(p *profile.Profile) { p.Mapping[0].Start += 0x1000; p.Mapping[0].Limit += 0x1000 }, true},
		"one more mapping": {func(p *profile.Profile) {
			p.Mapping = append(p.Mapping, &profile.Mapping{ID: 2, Start: 1 << 40, Limit: 2 << 40, File: "/lib/x"})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSeries(t, "heap", nil)
			s.scrape(profiletest.Pprof(t, profiletest.HeapPprof(10, 1000, 2, 200)), time.Now())
			next := profiletest.HeapPprof(20, 2000, 2, 200)
			test.change(next)
			got := s.scrape(profiletest.Pprof(t, next), time.Now())
			want := 4
			if test.restarted {
				want = 2
			}
			assert.Len(t, got, want)
			assert.Equal(t, test.restarted, s.restarts() == 1)
			assert.Equal(t, sums(expand.Pprof(next), inUse), sums(profiletest.Expand(t, s.received...), inUse))
			next.Sample[0].Value[0] += 5
			next.Sample[0].Value[1] += 50
			got = s.scrape(profiletest.Pprof(t, next), time.Now())
			assert.Len(t, got, 4, "the new process is the baseline")
		})
	}
}

// A type in which nothing has changed has a Profile without samples, which covers the time between the scrapes. The first scrape has no
// Profile of cumulative types, whose interval is not known.
func TestDeltasOfZeroCoverTheirTime(t *testing.T) {
	s := newSeries(t, "heap", nil)
	p := profiletest.HeapPprof(10, 1000, 2, 200)
	payload := profiletest.Pprof(t, p)
	require.Len(t, s.scrape(payload, time.Now()), 2)
	p.TimeNanos += 15e9
	payload = profiletest.Pprof(t, p)
	require.Len(t, s.scrape(payload, time.Now().Add(15*time.Second)), 4)
	durations := map[int][]uint64{} // by number of samples
	for got := range sampletypes.ProfilesOf(s.received[len(s.received)-1]) {
		durations[got.Samples().Len()] = append(durations[got.Samples().Len()], got.DurationNano())
	}
	assert.Equal(t, map[int][]uint64{0: {15e9, 15e9}, 1: {0, 0}}, durations)
	assert.Zero(t, s.restarts())

	p.Sample = nil
	assert.Len(t, s.scrape(profiletest.Pprof(t, p), time.Now().Add(30*time.Second)), 2, "the snapshots are empty")
	assert.Equal(t, 1, s.restarts(), "a stack is gone")
	assert.Len(t, s.scrape(payload, time.Now().Add(45*time.Second)), 4, "the new process is the baseline")
}

// What is temporarily rejected, or lost on the way, is in the next delta, except for
// targets that compute deltas: they send each only once, and the next one starts later.
func TestDeltaAfterLoss(t *testing.T) {
	const minute = int64(time.Minute)
	taken := func(n int64) []byte {
		p := profiletest.HeapPprof(10*n, 1000*n, 1, 100)
		p.TimeNanos += n * minute
		return profiletest.Pprof(t, p)
	}
	at := func(n int64) time.Time { return time.Unix(1_700_000_000, n*minute) }
	rejected := func(answer error) func(s *series) {
		return func(s *series) {
			s.answer = answer
			require.Error(t, s.try(taken(2), at(2)))
			s.answer = nil
		}
	}
	retryable, permanent := rejected(errors.New("not now")), rejected(consumererror.NewPermanent(errors.New("never")))
	lost := func(s *series) { s.scraper.jobs[0].lost(at(2)) }
	malformed := func(s *series) { require.Error(t, s.try([]byte("no pprof"), at(2))) }
	instantOnly := func(s *series) { // it is no baseline
		p := profiletest.HeapPprof(0, 0, 1, 100)
		p.SampleType, p.Sample[0].Value, p.DefaultSampleType = p.SampleType[2:], []int64{1, 100}, ""
		require.Len(s.t, s.scrape(profiletest.Pprof(t, p), at(2)), 2)
	}
	for name, test := range map[string]struct {
		profileType    string
		between        func(s *series)
		objects, since int64
	}{
		"cumulative, retryable": {"heap", retryable, 20, 1},
		"cumulative, permanent": {"heap", permanent, 10, 2},
		"cumulative, lost":      {"heap", lost, 20, 1},
		"cumulative, malformed": {"heap", malformed, 20, 1},
		"cumulative, instant":   {"heap", instantOnly, 20, 1},
		"since last, retryable": {"delta_heap", retryable, 30, 2},
		"since last, lost":      {"delta_heap", lost, 30, 2},
		"since last, malformed": {"delta_heap", malformed, 30, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSeries(t, test.profileType, nil)
			s.scraper.jobs[0].lost(at(0)) // before the first it changes nothing
			require.Len(t, s.scrape(taken(1), at(1)), 2)
			test.between(s)
			got := s.scrape(taken(3), at(3))
			at := slices.IndexFunc(got, func(r received) bool { return r.sampleType == "alloc_objects" })
			require.GreaterOrEqual(t, at, 0)
			assert.Equal(t, test.objects, got[at].sum)
			assert.Equal(t, 1_700_000_000*int64(time.Second)+test.since*minute, got[at].start)
			assert.Equal(t, 1_700_000_000*int64(time.Second)+3*minute, got[at].end)
		})
	}
}

func TestTemporalityOfProfileTypes(t *testing.T) {
	for name, want := range map[string]struct {
		alloc, allocWithoutDeltas string
		inUse                     string // "" is as alloc
	}{
		"cpu":           {"delta", "delta", ""},
		"heap":          {"delta", "cumulative", "instant"},
		"allocs":        {"delta", "cumulative", "instant"},
		"goroutine":     {"instant", "instant", ""},
		"goroutineleak": {"instant", "instant", ""},
		"threadcreate":  {"instant", "instant", ""},
		"mutex":         {"delta", "cumulative", ""},
		"block":         {"delta", "cumulative", ""},
		"delta_heap":    {"delta", "delta", "instant"},
		"delta_mutex":   {"delta", "delta", ""},
		"delta_block":   {"delta", "delta", ""},
		"trace":         {"delta", "delta", ""},
	} {
		for _, deltas := range []bool{true, false} {
			s := newSeries(t, name, func(c *Config) { c.Delta = deltas })
			var got []received
			for n := range int64(2) {
				p := profiletest.HeapPprof(10*n, 1000*n, 1+n, 100*n)
				p.TimeNanos += n
				got = s.scrape(profiletest.Pprof(t, p), time.Unix(1_700_000_000, n))
			}
			assert.Len(t, got, 4)
			for _, r := range got {
				temporality := want.alloc
				if !deltas {
					temporality = want.allocWithoutDeltas
				}
				if strings.HasPrefix(r.sampleType, inUse) && want.inUse != "" {
					temporality = want.inUse
				}
				assert.Equal(t, temporality, r.temporality, "%s of %s, delta: %t", r.sampleType, name, deltas)
			}
		}
	}
	assert.Len(t, profileTypes, 12, "each has its row above")
	assert.False(t, profileTypeOfPath("/custom/profiles/mine").isCumulative())
}

func TestNegativeCountersAreRejected(t *testing.T) {
	s := newSeries(t, "heap", nil)
	err := s.try(profiletest.Pprof(t, profiletest.HeapPprof(-1, 0, 0, 0)), time.Now())
	require.ErrorContains(t, err, "negative value -1 for cumulative sample type alloc_objects")
	assert.Equal(t, "malformed", outcomeOf(err))
}

func TestIntervals(t *testing.T) {
	at := time.Unix(2000, 0)
	for name, test := range map[string]struct {
		last, next      baseline
		start, duration uint64
	}{
		"by the target's clock": {baseline{target: 1000e9, at: at}, baseline{target: 1060e9, at: at.Add(61 * time.Second)}, 1000e9, 60e9},
		"it was set back":       {baseline{target: 1000e9, at: at}, baseline{target: 900e9, at: at.Add(61 * time.Second)}, 839e9, 61e9},
		"it was set forward":    {baseline{target: 1000e9, at: at}, baseline{target: 19060e9, at: at.Add(61 * time.Second)}, 18999e9, 61e9},
		"late responses":        {baseline{target: 1000e9, at: at}, baseline{target: 1060e9, at: at.Add(9 * time.Second)}, 1000e9, 60e9},
		"it is unknown":         {baseline{at: at}, baseline{at: at.Add(61 * time.Second)}, 2000e9, 61e9},
		"from 1970":             {baseline{at: at}, baseline{target: 5e9, at: at.Add(61 * time.Second)}, 1, 61e9},
	} {
		start, duration := interval(&test.last, &test.next)
		assert.EqualValues(t, test.start, start, name)
		assert.Equal(t, test.duration, duration, name)
	}
}

// All baselines take at most a quarter of max_in_flight. Without room for one there is no
// delta, and the scrape says so.
func TestBaselinesAreBounded(t *testing.T) {
	payload := profiletest.Pprof(t, profiletest.HeapPprof(10, 1000, 2, 200))
	s := newSeries(t, "heap", nil)
	inFlight := s.scraper.settings.InFlight
	s.scrape(payload, time.Now())
	assert.EqualValues(t, len(payload), inFlight.InUse())
	s.scrape(payload, time.Now())
	assert.EqualValues(t, len(payload), inFlight.InUse(), "the next one replaces it")

	more := func(n int64) []byte { return profiletest.Pprof(t, profiletest.HeapPprof(10+n, 1000+n, 2, 200)) }
	others := int64(64<<20 - len(payload))
	lease := inFlight.Lease(0)
	require.NoError(t, lease.Take(others))
	require.True(t, lease.KeepBaseline(others))
	require.NoError(t, s.try(payload, time.Now()))
	larger := profiletest.HeapPprof(11, 1001, 2, 200)
	larger.Mapping = append(larger.Mapping, &profile.Mapping{ID: 2, Start: 1 << 40, Limit: 2 << 40, File: "/lib/x"})
	err := s.try(profiletest.Pprof(t, larger), time.Now())
	require.ErrorContains(t, err, "no room for a delta baseline")
	assert.Equal(t, "too_large", outcomeOf(err))
	assert.Len(t, s.all(), 4, "what was fetched is passed on")
	inFlight.FreeBaseline(others)
	assert.Len(t, s.scrape(more(2), time.Now()), 2)
	assert.Len(t, s.scrape(more(3), time.Now()), 4)

	// Other receivers of the process share the limit.
	s.scraper.cancel = func() {}
	s.scraper.client = http.DefaultClient
	require.NoError(t, s.scraper.Shutdown(t.Context()))
	assert.Zero(t, inFlight.InUse(), "after Shutdown")
}

// A delta needs at most four times the memory of the profile as OTLP, and its body. So does the first scrape, and
// one after a restart.
func TestDeltasReserveLittleMemory_M1(t *testing.T) {
	tested := 0
	for _, file := range profiletest.Corpus(t) {
		if !strings.Contains(file.Name, "heap") {
			continue
		}
		tested++
		data, err := pproftranslator.Decompress(file.Data, 64<<20)
		require.NoError(t, err)
		_, report, err := (&pproftranslator.Unmarshaler{}).UnmarshalReport(data)
		require.NoError(t, err)
		s := newSeries(t, "heap", nil)
		s.scraper.settings.InFlight = budget.New((int64(report.Bytes)*4 + int64(len(data)) + 64<<10) * 4 / 3)
		at := time.Unix(1_800_000_000, 0)
		s.scrape(data, at)
		s.scrape(data, at.Add(time.Minute))
		require.Zero(t, s.restarts())
		less := parsed(t, data)
		less.Sample = less.Sample[1:]
		s.scrape(profiletest.Pprof(t, less), at.Add(2*time.Minute))
		require.LessOrEqual(t, s.restarts(), 1)
	}
	assert.NotZero(t, tested)
}
