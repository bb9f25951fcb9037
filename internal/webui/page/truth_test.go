// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/s3test"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/bucket"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/upload"
	pb "github.com/otelcol-profiles/otelcol-profiles/internal/webui/queryapi/querierpb"
)

// producer is a process that is profiled for some seconds in each of every seconds, from a phase after its start on. Without a
// length it has snapshots of a level.
type producer struct {
	from, to, phase, every, length int
	cores                          func(i int) float64
	level                          int64
	// collects: the thread gc has as much in every third interval.
	collects bool
}

func steady(cores float64) func(int) float64 { return func(int) float64 { return cores } }

func equal(n int, p producer, phase int) (all []producer) {
	for i := range n {
		of := p
		of.phase = i * phase
		all = append(all, of)
	}
	return all
}

// replaced are processes each of which follows another one.
func replaced(n, lifetime int, p producer, phase func(i int) int) (all []producer) {
	for i := range n {
		of := p
		of.from, of.to, of.phase = i*lifetime, (i+1)*lifetime, phase(i)
		all = append(all, of)
	}
	return all
}

const (
	hour = 3600
	mib  = 1 << 20
)

// truths are known rates in cores, or levels in bytes, by service.
var truths = map[string]struct {
	producers []producer
	want      float64
	level     bool
}{
	"never at once": {equal(3, producer{to: hour, every: 60, length: 10, cores: steady(0.4)}, 20), 1.2, false},
	"half at once":  {equal(3, producer{to: hour, every: 60, length: 10, cores: steady(0.4)}, 5), 1.2, false},
	"at once":       {equal(3, producer{to: hour, every: 60, length: 10, cores: steady(0.4)}, 0), 1.2, false},
	"idle": {[]producer{{to: hour, every: 60, length: 10, cores: func(i int) float64 {
		return []float64{0.6, 0, 0}[i%3]
	}}}, 0.2, false},
	"different shares": {[]producer{
		{to: hour, every: 60, length: 10, cores: steady(0.2)}, {to: hour, phase: 20, every: 60, length: 30, cores: steady(1)},
	}, 1.2, false},
	"continuous": {equal(2, producer{to: hour, every: 10, length: 10, cores: steady(0.5)}, 0), 1, false},
	"collecting": {equal(2, producer{to: hour, every: 15, length: 10, cores: steady(0.3), collects: true}, 7), 0.8, false},
	"scaled": {append(equal(1, producer{to: hour, every: 60, length: 10, cores: steady(1)}, 0),
		equal(3, producer{from: hour / 2, to: hour, every: 60, length: 10, cores: steady(1)}, 13)...), 2.5, false},
	"restarts": {replaced(12, 300, producer{every: 60, length: 10, cores: steady(0.5)}, func(i int) int { return 7 * i % 40 }), 0.5, false},
	// Statistics of allocations change at a garbage collection only.
	"allocations": {[]producer{{to: hour, every: 15, length: 15, cores: func(i int) float64 {
		if i%8 == 7 {
			return 8 * 0.3
		}
		return 0
	}}}, 0.3, false},
	"replaced, 15 s": {replaced(15, 240, producer{every: 15, level: 100 * mib}, func(i int) int { return (7*i + 3) % 15 }), 100 * mib, true},
	"replaced, 60 s": {replaced(15, 240, producer{every: 60, level: 100 * mib}, func(i int) int { return (7*i + 3) % 60 }), 100 * mib, true},
}

// produced are all Profiles in the order of their ends, and the sums of intervals by service.
func produced(begin time.Time) (profiles []sent, sums map[string]int64) {
	sums = map[string]int64{}
	for service, truth := range truths {
		for process, of := range truth.producers {
			i := 0
			for at := of.from + of.phase; at+of.length <= of.to; at += of.every {
				start, instance := begin.Add(time.Duration(at)*time.Second), fmt.Sprint(process)
				p := heap(service, instance, start, of.level)
				if !truth.level {
					p = cpu(service, start, int64(math.Round(of.cores(i)*float64(of.length)*1e9)))
					p.instance, p.duration = instance, time.Duration(of.length)*time.Second
					sums[service] += p.value
				}
				if profiles = append(profiles, p); of.collects && i%3 == 0 {
					p.label = "gc"
					profiles = append(profiles, p)
					sums[service] += p.value
				}
				i++
			}
		}
	}
	slices.SortStableFunc(profiles, func(a, b sent) int { return a.end().Compare(b.end()) })
	return profiles, sums
}

func (p *sent) end() time.Time { return p.at.Add(p.duration) }

func payloadOf(t *testing.T, p *sent) pprofile.Profiles {
	pd := payload(t, *p)
	if p.value == 0 { // an idle interval has no samples
		pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().RemoveIf(func(pprofile.Sample) bool { return true })
	}
	return pd
}

// windowed merges the Profiles that end in the same window, as a gateway does that cannot tell processes apart.
func windowed(t *testing.T, profiles []sent, window time.Duration) (payloads []pprofile.Profiles) {
	options := &merge.Options{
		Snapshots: merge.SnapshotsKeep, SnapshotSampleTypes: sampletypes.SnapshotSampleTypes, DropZeroSamples: true,
		DropResourceAttributes: []string{"service.instance.id"},
	}
	for len(profiles) > 0 {
		of := profiles[0].end().Truncate(window)
		w := merge.NewWindow(options)
		for len(profiles) > 0 && profiles[0].end().Truncate(window).Equal(of) {
			checked, err := merge.Check(payloadOf(t, &profiles[0]), options)
			require.NoError(t, err)
			require.NoError(t, w.Add(checked))
			profiles = profiles[1:]
		}
		payloads = append(payloads, w.Emit(""))
	}
	return payloads
}

// compacted makes hours of a minute and, if days is set, days of ten minutes.
func (s *site) compacted(begin time.Time, days bool) {
	now := begin.Add(3 * time.Hour)
	c := compact.New(compact.Options{
		Directory: s.dir, After: time.Hour, Resolutions: []time.Duration{time.Minute, 10 * time.Minute}, MaxMemory: 256 << 20,
		Compacted: func(compact.Result) {}, Skipped: func(path string, err error) { assert.NoError(s.t, err, path) },
		Damaged: func(path string) { assert.Fail(s.t, "damaged", path) }, Now: func() time.Time { return now },
	})
	require.NoError(s.t, c.Run(s.t.Context()))
	if days {
		now = begin.Add(50 * time.Hour)
		require.NoError(s.t, c.Run(s.t.Context()))
	}
}

// uploaded is a page of a bucket to which the files are uploaded.
func (s *site) uploaded(t *testing.T) *site {
	server := s3test.New(t)
	u, err := upload.New(upload.Options{
		Location: bucket.Location{Endpoint: server.URL, Bucket: s3test.Bucket, Prefix: "p"}, Directory: s.dir, Timeout: 10 * time.Second,
		Uploaded: func(string, int64) {}, Removed: func(string) {}, Waiting: func(int) {}, Failed: func(err error, _ time.Duration) { assert.NoError(s.t, err) },
	})
	require.NoError(s.t, err)
	defer u.Close()
	require.NoError(s.t, u.Upload(s.t.Context()))
	return s.remote(server.Path("p"))
}

// TestReadersShowTheTruth_T1: rates and levels are those that processes had, on whatever way their profiles came, and from a bucket, too.
func TestReadersShowTheTruth_T1(t *testing.T) {
	begin := time.Now().Add(-72 * time.Hour).UTC().Truncate(24 * time.Hour).Add(10 * time.Hour)
	profiles, sums := produced(begin)
	for way, of := range map[string]struct {
		window      time.Duration
		hours, days bool
	}{
		"direct": {}, "windows of 5 s": {window: 5 * time.Second}, "windows of 60 s": {window: time.Minute},
		"compacted to 1 minute": {hours: true}, "compacted to 10 minutes": {hours: true, days: true},
		"windows of 60 s, compacted": {window: time.Minute, hours: true, days: true},
	} {
		t.Run(way, func(t *testing.T) {
			s := newSite(t)
			s.now = begin.Add(time.Hour)
			var payloads []pprofile.Profiles
			if of.window > 0 {
				payloads = windowed(t, profiles, of.window)
			} else {
				for i := range profiles {
					payloads = append(payloads, payloadOf(t, &profiles[i]))
				}
			}
			s.writeAt(begin.Add(30*time.Minute), payloads)
			if of.hours {
				s.compacted(begin, of.days)
			}
			s.requireTruth(begin, sums)
			s.uploaded(t).requireTruth(begin, sums)
		})
	}
}

// writeAt writes a file at a time.
func (s *site) writeAt(now time.Time, payloads []pprofile.Profiles) {
	w, err := store.OpenWriter(store.Options{
		Directory: s.dir, MaxOpen: 10, Format: segment.Proto, Failed: func(err error) { assert.NoError(s.t, err) }, Now: func() time.Time { return now },
	})
	require.NoError(s.t, err)
	for _, pd := range payloads {
		record := store.Record{}
		record.Entry, err = contents.Describe(pd)
		require.NoError(s.t, err)
		record.Data, err = (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
		require.NoError(s.t, err)
		require.NoError(s.t, w.Append(record))
	}
	require.NoError(s.t, w.Close())
}

func (s *site) requireTruth(begin time.Time, sums map[string]int64) {
	t, end := s.t, begin.Add(time.Hour)
	rows := map[string]apiRow{}
	for _, row := range s.services(url.Values{"from": {begin.Format(time.RFC3339)}, "to": {end.Format(time.RFC3339)}}.Encode()) {
		rows[row.Service] = row
	}
	q := s.querier()
	for service, truth := range truths {
		row, found := rows[service]
		require.True(t, found, service)
		request := &pb.SelectSeriesRequest{
			ProfileTypeID: typeCPU, LabelSelector: fmt.Sprintf("{service_name=%q}", service), Step: 600,
			Start: begin.Add(10*time.Minute).UnixMilli() - 1, End: end.UnixMilli() - 1,
		}
		if truth.level {
			request.ProfileTypeID = typeHeap
		}
		series := must[pb.SelectSeriesResponse](q, "SelectSeries", request).Series
		require.Len(t, series, 1, service)
		require.Len(t, series[0].Points, 6, service)
		if truth.level {
			assert.InDelta(t, truth.want, row.Sum, 0, service)
			assert.Equal(t, 1, row.Processes, service)
			assert.LessOrEqual(t, *row.Age, 61.0, service)
			for _, p := range series[0].Points {
				assert.InEpsilon(t, truth.want, p.Value, 0.12, service) // processes overlap for a part of a distance
			}
			continue
		}
		if service != "scaled" { // its rate is that of the time in which all have the same phase: see the steps
			assert.InEpsilon(t, truth.want, *row.Rate/1e9, 0.05, "%s: %+v", service, row)
		}
		sum := 0.0
		for _, p := range series[0].Points {
			sum += p.Value
		}
		assert.InDelta(t, float64(sums[service]), sum, 1e7, "%s: steps add up but for a millisecond at the end", service)
		assert.Equal(t, sums[service], row.Sum, service)
		if service == "continuous" {
			for _, p := range series[0].Points {
				assert.InEpsilon(t, truth.want, p.Value/1e9/600, 0.05, service)
			}
		}
	}
	// The thread is idle in two thirds of the intervals.
	collecting := s.services(url.Values{"from": {begin.Format(time.RFC3339)}, "to": {end.Format(time.RFC3339)}, "label": {"thread=gc"}}.Encode())
	require.Len(t, collecting, 1)
	assert.InEpsilon(t, 0.2, *collecting[0].Rate/1e9, 0.05, "%+v", collecting)
	assert.Equal(t, rows["collecting"].Processes, collecting[0].Processes)
	assert.InEpsilon(t, *rows["collecting"].Covered, *collecting[0].Covered, 1e-9)
	s.requireTruthOfThePage(begin, end)
}

// requireTruthOfThePage looks at what people read.
func (s *site) requireTruthOfThePage(begin, end time.Time) {
	t := s.t
	params, err := parseParams(url.Values{"from": {begin.Format(time.RFC3339)}, "to": {end.Format(time.RFC3339)}}, defaultRange, s.now)
	require.NoError(t, err)
	found, err := totalsOf(t.Context(), s.catalog, scopeOf(t.Context(), params.selected), s.room())
	require.NoError(t, err)
	require.Empty(t, found.missed.Failed)
	for _, of := range found.groups {
		steps, highest := axisOf(params.selected).values(of, false), 0.0
		for _, v := range steps {
			if !math.IsNaN(v) {
				highest = max(highest, v)
			}
		}
		if !of.Snapshot {
			assert.GreaterOrEqual(t, highest, of.Rate*0.999, "%s: no bar is as high as the mean", of.Service)
		}
		if of.Service == "scaled" {
			for want, part := range map[float64][]float64{1: steps[5:25], 4: steps[35:55]} {
				mean := 0.0
				for _, v := range part {
					mean += v / float64(len(part)) / 1e9
				}
				assert.InEpsilon(t, want, mean, 0.05)
			}
		}
	}
	page := s.page("/?" + url.Values{"from": {begin.Format(time.RFC3339)}, "to": {end.Format(time.RFC3339)}, "q": {"never at once"}}.Encode())
	assert.Regexp(t, `<td class="number value">1\.(19|20|21) cores<br><span class="small">3 processes, 0\.(39|40|41) cores each</span>`, strings.ReplaceAll(page, "\n", ""))
}
