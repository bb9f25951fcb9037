// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"cmp"
	"strconv"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"
)

// settings are those of the recording. The first chunk may be the only one that has them.
type settings struct {
	// Of async-profiler.
	event          string
	interval, wall int64 // nanoseconds; 0 means the default
	hasInterval    bool
	hasWall        bool
	// Of Datadog's library, in nanoseconds.
	datadogCPU, datadogWall int64
	// recorded families had samples in this chunk or an earlier one.
	recorded [families]bool
}

// records reports whether the settings say that a family is recorded. A chunk without samples of it then says that there were none.
func (s *settings) records(of family) bool {
	switch of {
	case familyCPU:
		return s.datadogCPU > 0 || s.event != "wall" && timers[s.event]
	case familyWall:
		return s.datadogWall > 0 || s.event == "wall" || s.hasWall
	default:
		return false
	}
}

// The intervals that async-profiler takes by default, in nanoseconds: 10 ms on a CPU, and
// five times as much by the clock, as it looks at every thread.
const (
	defaultInterval     = 10e6
	defaultWallInterval = 50e6
)

// timers are the events of async-profiler whose interval is a time. Others are counters of
// a CPU, or calls of a function.
var timers = map[string]bool{"cpu": true, "itimer": true, "ctimer": true, "wall": true}

// readSetting reads the setting of the event that d.values are, or several ones.
func (d *decoder) readSetting(e *event) {
	s := &d.settings
	if e.datadog {
		unit := cmp.Or(e.unit, jfr.UnitMilliseconds)
		s.datadogCPU = d.Header.In(unit, int64(d.values[slotCPUInterval]))
		s.datadogWall = d.Header.In(unit, int64(d.values[slotWallInterval]))
		return
	}
	text := d.Text(int32(d.values[slotSetting]))
	name := string(text[:min(len(text), len("interval")+1)]) // a longer one is none of these
	value := d.Text(int32(d.values[slotSettingValue]))
	if !d.takeText(dictionary.ValidSize(text) + dictionary.ValidSize(value)) {
		return
	}
	switch name {
	case "event":
		s.event = string(value)
	case "interval":
		s.interval, s.hasInterval = parseInterval(value), true
	case "wall":
		s.wall, s.hasWall = parseInterval(value), true
	}
}

// parseInterval returns a time in nanoseconds, or 0 if text is none.
func parseInterval(text []byte) int64 {
	n, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil {
		return 0
	}
	return int64(n)
}

// asyncFamily returns the family of a jdk.ExecutionSample of async-profiler. With the
// option wall, it samples both on a CPU and by the clock. Only the latter looks at the state of a
// thread, so that it has one.
func (s *settings) asyncFamily(state []byte) family {
	if s.event == "wall" || s.hasWall && string(state) != "STATE_DEFAULT" {
		return familyWall
	}
	return familyCPU
}

// period returns the time that a sample of a family stands for, in nanoseconds, or 0 if it is
// not known. rate is that of the request.
func (s *settings) period(of family, datadog bool, rate float64) int64 {
	fallback := int64(0)
	if rate > 0 {
		fallback = int64(1e9 / rate)
	}
	own, isCPU := int64(0), of == familyCPU
	switch {
	case !isCPU && of != familyWall, isCPU && !datadog && s.event != "" && !timers[s.event]:
		return 0
	case datadog && isCPU:
		own = s.datadogCPU
	case datadog:
		own = s.datadogWall
	case isCPU && s.hasInterval && s.event != "":
		own = cmp.Or(s.interval, fallback, defaultInterval)
	case !isCPU && s.hasWall:
		own = cmp.Or(s.wall, fallback, defaultWallInterval)
	case !isCPU && s.hasInterval:
		own = cmp.Or(s.interval, fallback, defaultWallInterval)
	}
	return cmp.Or(own, fallback)
}
