// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscripttranslator_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"testing"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// The expressions with which stackcollapse-perf.pl reads the text.
var (
	collapseHeader = regexp.MustCompile(`^\s*(\S.*?)\s+(-?\d+)(?:/(-?\d+))?\s+(?:\[\d+\]\s+)?(\d+)\.(\d+):\s+(?:(\d+)\s+)?(\S+?):(?:\s|$)`)
	collapseFrame  = regexp.MustCompile(`^\s+(\w+)\s*(.+) \((\S*)\)$`)
	collapseOffset = regexp.MustCompile(`\+0x[\da-f]+$`)
)

// collapse counts the stacks of an event as stackcollapse-perf.pl does: comm;root;…;leaf.
func collapse(text, event string) map[string]int64 {
	counts := map[string]int64{}
	for sample := range strings.SplitSeq(text, "\n\n") {
		key, frames := "", []string{}
		for line := range strings.SplitSeq(sample, "\n") {
			if m := collapseHeader.FindStringSubmatch(line); m != nil && m[7] == event {
				key = m[1]
			} else if m := collapseFrame.FindStringSubmatch(line); m != nil {
				name := collapseOffset.ReplaceAllString(m[2], "")
				if name == "[unknown]" {
					name = "[" + m[3] + "]"
				}
				frames = append([]string{name}, frames...)
			}
		}
		if key != "" {
			counts[strings.Join(append([]string{key}, frames...), ";")]++
		}
	}
	return counts
}

// collapsed is collapse for what the package makes of an event.
func collapsed(t testing.TB, pd pprofile.Profiles, profileType, sampleType string) map[string]int64 {
	t.Helper()
	counts := map[string]int64{}
	for _, p := range profiletest.Expand(t, pd) {
		if expand.Text(p.Scope.Attributes, attrkey.ProfileType) != profileType || p.Type != sampleType {
			continue
		}
		for _, s := range p.Samples {
			key := ""
			for _, f := range s.Stack {
				if len(f.Lines) == 0 {
					key = ";[" + f.Mapping.File + "]" + key
				}
				for _, l := range f.Lines {
					key = ";" + l.Function + key
				}
			}
			counts[expand.Text(s.Attributes, "thread.name")+key] += s.Sum.Int64()
		}
	}
	return counts
}

// off is how many microseconds a thread was off the CPU, by thread, state and second of the day, one by one.
type off map[string]int

var (
	slowSwitch = regexp.MustCompile(`(\d+)\.(\d{6}): +sched:sched_switch: prev_comm=.* prev_pid=(\d+) prev_prio=\d+ prev_state=(\S+) ==> next_comm=.* next_pid=(\d+) next_prio=\d+$`)
	slowWaking = regexp.MustCompile(`(\d+)\.(\d{6}): +sched:sched_waking: comm=.* pid=(\d+) prio=`)
	slowTime   = regexp.MustCompile(`^\S.* (\d+)\.(\d{6}): `)
)

// offCPU walks through the text a microsecond at a time, and says in which state each thread is that is off the CPU.
// A thread counts from the first time that it leaves a CPU in the text.
func offCPU(t testing.TB, text string) off {
	t.Helper()
	type action struct {
		prev, next, woken, state string
	}
	at := map[int64][]action{}
	first, last := int64(-1), int64(0)
	micros := func(seconds, fraction string) int64 {
		s, err := strconv.ParseInt(seconds, 10, 64)
		require.NoError(t, err)
		f, err := strconv.ParseInt(fraction, 10, 64)
		require.NoError(t, err)
		return s*1e6 + f
	}
	for line := range strings.SplitSeq(text, "\n") {
		if m := slowTime.FindStringSubmatch(line); m != nil {
			now := micros(m[1], m[2])
			if first < 0 {
				first = now
			}
			last = now
		}
		if m := slowSwitch.FindStringSubmatch(line); m != nil {
			now := micros(m[1], m[2])
			at[now] = append(at[now], action{prev: m[3], next: m[5], state: m[4]})
		}
		if m := slowWaking.FindStringSubmatch(line); m != nil {
			now := micros(m[1], m[2])
			at[now] = append(at[now], action{woken: m[3]})
		}
	}
	states, result := map[string]string{}, off{}
	for now := first; now <= last; now++ {
		for _, a := range at[now] {
			if a.woken != "" && states[a.woken] == timing.Blocked {
				states[a.woken] = timing.Runnable
			}
			if a.prev == "" {
				continue
			}
			delete(states, a.next)
			switch {
			case a.prev == "0", strings.ContainsAny(a.state[:1], "XZ"):
			case a.state[0] == 'R':
				states[a.prev] = timing.Runnable
			default:
				states[a.prev] = timing.Blocked
			}
		}
		if now == last { // the text ends
			break
		}
		for thread, state := range states {
			result[fmt.Sprintf("%s %s %d", thread, state, now)]++
		}
	}
	return result
}

// offCPUOf is offCPU for what the package makes of a text that ends a nanosecond after its last sample.
func offCPUOf(t testing.TB, all ...pprofile.Profiles) off {
	t.Helper()
	result := off{}
	for _, pd := range all {
		for _, p := range profiletest.Expand(t, pd) {
			if p.Type != "off_cpu" {
				continue
			}
			for _, s := range p.Samples {
				require.Equal(t, timing.MarksStart, expand.Text(s.Attributes, timing.TimestampMarksAttribute))
				for _, point := range s.Points {
					start, end := int64(point.Timestamp)/1000, (int64(point.Timestamp)+point.Value)/1000
					for now := start; now < end; now++ {
						result[fmt.Sprintf("%v %s %d", expand.Value(s.Attributes, "thread.id"), expand.Text(s.Attributes, timing.StateAttribute), now)]++
					}
				}
			}
		}
	}
	return result
}
