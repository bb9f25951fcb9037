// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/jfrwriter"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
)

// waits are the events in which a thread waits, and the reasons of these.
var waits = []struct{ event, reason string }{
	{"jdk.JavaMonitorEnter", timing.Lock},
	{"jdk.JavaMonitorWait", timing.Wait},
	{"jdk.ThreadPark", timing.Wait},
	{"jdk.ThreadSleep", timing.Sleep},
	{"jdk.SocketRead", timing.Network},
	{"jdk.SocketWrite", timing.Network},
	{"jdk.FileRead", timing.File},
	{"jdk.FileWrite", timing.File},
	{"jdk.FileForce", timing.File},
}

func waiting() *jfrwriter.Chunk {
	c := java()
	for _, w := range waits {
		c.Class(w.event, jfrwriter.StartTime, jfrwriter.Duration, jfrwriter.Thread, jfrwriter.Stack)
	}
	return c
}

// isTime reports whether the values of a Profile are times.
func isTime(p expand.Profile) bool { return p.Unit == "nanoseconds" }

func TestEventsInWhichAThreadWaitsAreIntervals(t *testing.T) {
	for _, w := range waits {
		c := waiting()
		c.Event(w.event, 2000, 300, 1, 1)
		for _, timestamps := range []bool{true, false} {
			pd, _ := unmarshal(t, jfrtranslator.Unmarshaler{Timestamps: timestamps}, c)
			profiles := profiletest.Expand(t, pd)
			require.Len(t, profiles, 2, w.event)
			for _, p := range profiles {
				s := p.Samples[0]
				assert.Equal(t, timing.Blocked, expand.Text(s.Attributes, timing.StateAttribute), w.event)
				assert.Equal(t, w.reason, expand.Text(s.Attributes, timing.ReasonAttribute), w.event)
				if !timestamps {
					assert.Empty(t, s.Points)
					continue
				}
				assert.Equal(t, timing.MarksEnd, expand.Text(s.Attributes, timing.TimestampMarksAttribute))
				require.Len(t, s.Points, 1)
				assert.EqualValues(t, 1300, s.Points[0].Timestamp-p.Time, "1000 ticks are the start of the chunk")
				if isTime(p) {
					assert.EqualValues(t, 300, s.Points[0].Value)
				}
			}
		}
	}
}

// A thread waits for a lock while it reads from a socket: of both events together, each nanosecond counts once.
func TestTimeOfAWaitWithinAWaitCountsOnce(t *testing.T) {
	c := waiting()
	c.Event("jdk.ThreadPark", 1020, 60, 1, 2) // ends first
	c.Event("jdk.SocketRead", 1000, 100, 1, 1)
	c.Event("jdk.SocketRead", 1000, 100, 2, 1) // of another thread
	pd, _ := unmarshal(t, jfrtranslator.Unmarshaler{Timestamps: true}, c)
	blocked := func(reason string) string {
		return " otelcol_profiles.reason=" + reason + " otelcol_profiles.state=blocked otelcol_profiles.timestamp_marks=end"
	}
	assert.Equal(t, `block contentions/count
  `+nativeStack+` 1`+blocked("wait")+mainThread+` @80:1
block delay/nanoseconds
  `+nativeStack+` 60`+blocked("wait")+mainThread+` @80:60
off_cpu events/count
  `+javaStack+` 1`+blocked("network")+mainThread+` @20:0 @100:1
  `+javaStack+` 1`+blocked("network")+gcThread+` @100:1
off_cpu off_cpu/nanoseconds
  `+javaStack+` 100`+blocked("network")+gcThread+` @100:100
  `+javaStack+` 40`+blocked("network")+mainThread+" @20:20 @100:20\n", show(t, pd))

	pd, _ = unmarshal(t, jfrtranslator.Unmarshaler{}, c)
	assert.Equal(t, "block contentions/count 1, block delay/nanoseconds 60, off_cpu events/count 2, off_cpu off_cpu/nanoseconds 140", totals(t, pd))
}

// timeline is, for each thread, the nanoseconds in which it waits.
func timeline(t *testing.T, pd pprofile.Profiles) (at map[string]int, events int64) {
	t.Helper()
	at = map[string]int{}
	for _, p := range profiletest.Expand(t, pd) {
		for _, s := range p.Samples {
			if !isTime(p) {
				events += s.Sum.Int64()
				continue
			}
			for _, point := range s.Points {
				for n := point.Value; n > 0; n-- {
					at[fmt.Sprint(expand.Value(s.Attributes, "thread.id"), int64(point.Timestamp-p.Time)-n)]++
				}
			}
		}
	}
	return at, events
}

// Random waits, which may nest and overlap in any way, cover exactly the nanoseconds in which one of them was, each once.
func TestWaitsCoverEachNanosecondOnce(t *testing.T) {
	const end = 200
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		c, want, n := waiting(), map[string]int{}, random.IntN(12)
		for range n {
			start, thread := random.IntN(end), 1+random.IntN(2)
			length := random.IntN(end - start)
			c.Event(waits[random.IntN(len(waits))].event, 1000+start, length, thread, 1)
			for at := start; at < start+length; at++ {
				want[fmt.Sprint([]int{0, 1, 200}[thread], at)] = 1
			}
		}
		pd, _ := unmarshal(t, jfrtranslator.Unmarshaler{Timestamps: true}, c)
		got, events := timeline(t, pd)
		require.Equal(t, want, got)
		require.EqualValues(t, n, events)

		summed, _ := unmarshal(t, jfrtranslator.Unmarshaler{}, c)
		require.Equal(t, totals(t, pd), totals(t, summed), "without timestamps")
	}
}

// A recording may state any times: 10^6 events in one sample, in any order, before and after the chunk.
func TestHostileTimesStayInTheirChunk_J7(t *testing.T) {
	const events = 1_000_000
	c := waiting()
	executionSample(c)
	random := rand.New(rand.NewPCG(3, 4))
	for i := range events {
		switch i % 4 {
		case 0:
			c.Event("jdk.ThreadSleep", int64(random.Uint64()), int64(random.Uint64()>>1), 1, 1)
		case 1:
			c.Event("jdk.ThreadPark", 1000+random.Int64N(1e10), random.Int64N(1e9), 1, 1)
		default:
			c.Event("jdk.ExecutionSample", int64(random.Uint64()), 1, 1, 1)
		}
	}
	data := c.Bytes()
	u := jfrtranslator.Unmarshaler{Timestamps: true}
	pd, report, err := u.UnmarshalWithin(data, 1<<30, nil)
	require.NoError(t, err)
	assert.Greater(t, report.OutsideTimes, events/2)
	assert.Less(t, report.Bytes, 256<<20)
	samples, sum := 0, int64(0)
	for _, sp := range pd.ResourceProfiles().At(0).ScopeProfiles().All() {
		for _, p := range sp.Profiles().All() {
			for _, s := range p.Samples().All() {
				for i, at := range s.TimestampsUnixNano().All() {
					if at < uint64(p.Time()) || at >= uint64(p.Time())+p.DurationNano() {
						t.Fatal("outside the chunk")
					}
					samples++
					sum += s.Values().At(i)
				}
			}
		}
	}
	assert.GreaterOrEqual(t, samples, events)
	assert.Positive(t, sum)
}
