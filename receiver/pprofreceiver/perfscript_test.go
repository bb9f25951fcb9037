// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// The second switch out of thread 7 has none before it, and the last line is of no sample.
const perfScript = `prog 7/7 [000] 100.000000: sched:sched_switch: prev_comm=prog prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b next_pid=8 next_prio=120
	    55 main+0x1 (/bin/prog)

prog 7/7 [000] 100.300000:    1000000 cpu-clock:
	    55 main+0x1 (/bin/prog)

prog 7/7 [000] 100.400000: sched:sched_switch: prev_comm=prog prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b next_pid=8 next_prio=120
	    55 main+0x1 (/bin/prog)

b 8/8 [000] 100.700000: sched:sched_switch: prev_comm=b prev_pid=8 prev_prio=120 prev_state=S ==> next_comm=prog next_pid=7 next_prio=120

other
`

// The output of perf script is recognized at each path that takes profiles, also as folded stacks, which some clients take it for.
func TestOutputOfPerfScriptByEveryWayIn(t *testing.T) {
	text := []byte(perfScript)
	for name, send := range map[string]func(b *testReceiver) answer{
		"v1/pprof":       func(b *testReceiver) answer { return b.push("?service.name=checkout", text) },
		"v1/pprof, gzip": func(b *testReceiver) answer { return b.push("?service.name=checkout", profiletest.Gzip(t, text)) },
		"ingest, folded": func(b *testReceiver) answer { return b.post("/ingest?name=checkout&format=folded", text) },
	} {
		t.Run(name, func(t *testing.T) {
			var b *testReceiver
			pd := passedOn(t, "", func(r *testReceiver) answer {
				b = r
				return send(r)
			})
			sums := map[string]string{}
			for _, p := range profiletest.Expand(t, pd) {
				for _, s := range p.Samples {
					sums[expand.Text(p.Scope.Attributes, attrkey.ProfileType)+" "+p.Type] = s.Sum.String()
				}
				assert.Equal(t, "checkout", expand.Text(p.Resource.Attributes, "service.name"))
				assert.Equal(t, "delta", expand.Text(p.Attributes, attrkey.Temporality))
				assert.NotEmpty(t, p.ProfileID)
				assert.WithinDuration(t, time.Now(), time.Unix(0, int64(p.Time+p.Duration)), time.Minute, "the last sample was taken now")
			}
			assert.Equal(t, "1000000", sums["cpu cpu"])
			assert.Equal(t, map[string]int64{"other_line": 1, "unpaired_switch": 1}, b.counts("otelcol_receiver_pprof_repairs", "repair"))
		})
	}
}
