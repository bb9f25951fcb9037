// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"cmp"
	"strconv"

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

// noteSetting keeps the position of an event with settings: strings that it refers to may
// follow. A recording has few of them.
func (d *decoder) noteSetting(typeID uint64, at int) (err error) {
	if e := d.eventOf(typeID); e == nil || e.kind < activeSetting {
		return nil
	}
	if d.settingsAt, err = jfr.Room(&d.Memory, d.settingsAt, 1); err != nil {
		return err
	}
	d.settingsAt = append(d.settingsAt, uint32(at))
	return nil
}

// readSettings reads the events with settings.
func (d *decoder) readSettings() error {
	var c jfr.Cursor
	for _, at := range d.settingsAt {
		typeID, _, err := d.EventAt(&c, int(at))
		if err != nil {
			return d.At(int(at), "", err)
		}
		e := d.eventOf(typeID)
		if of := e.class; e.kind == activeSetting {
			err = d.readActiveSetting(&c, of)
		} else {
			err = d.readDatadogConfig(&c, of)
		}
		if err != nil {
			return d.At(int(at), string(e.class.Name), err)
		}
	}
	return nil
}

// readActiveSetting reads a name and a value. Those of the JDK have other names.
func (d *decoder) readActiveSetting(c *jfr.Cursor, of *jfr.Class) error {
	var name string
	var value []byte
	fields := d.Meta.FieldsOf(of)
	for i := range fields {
		f := &fields[i]
		if key := string(f.Name); f.Kind == jfr.KindText && !f.Array && (key == "name" || key == "value") {
			text, err := d.Text(c)
			if err != nil {
				return err
			}
			if key == "name" {
				name = shortText(text)
			} else {
				value = []byte(shortText(text))
			}
			continue
		}
		d.Meta.SkipField(c, f, 0)
	}
	s := &d.settings
	switch {
	case c.Failed != "":
		return errString(c.Failed)
	case !d.async:
	case name == "event":
		s.event = string(value)
	case name == "interval":
		s.interval, s.hasInterval = parseInterval(value), true
	case name == "wall":
		s.wall, s.hasWall = parseInterval(value), true
	}
	return nil
}

// shortText returns text if it can be a name or value that matters.
func shortText(text []byte) string {
	const longest = 32
	if len(text) > longest {
		return ""
	}
	return string(text)
}

// parseInterval returns a time in nanoseconds, or 0 if text is none.
func parseInterval(text []byte) int64 {
	n, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil {
		return 0
	}
	return int64(n)
}

func (d *decoder) readDatadogConfig(c *jfr.Cursor, of *jfr.Class) error {
	fields := d.Meta.FieldsOf(of)
	for i := range fields {
		f := &fields[i]
		var to *int64
		switch string(f.Name) {
		case "cpuInterval":
			to = &d.settings.datadogCPU
		case "wallInterval":
			to = &d.settings.datadogWall
		}
		if to == nil || f.Kind != jfr.KindVarint || f.Array {
			d.Meta.SkipField(c, f, 0)
			continue
		}
		*to = d.Header.In(cmp.Or(f.Unit, jfr.UnitMilliseconds), int64(c.Varint()))
	}
	if c.Failed != "" {
		return errString(c.Failed)
	}
	return nil
}

type errString string

func (e errString) Error() string { return string(e) }

// asyncFamily returns the family of a jdk.ExecutionSample of async-profiler. With the
// option wall, it samples both on a CPU and by the clock. Only the latter looks at what a
// thread does, so that it has a state.
func (d *decoder) asyncFamily(e *event) family {
	s := &d.settings
	switch {
	case s.event == "wall":
		return familyWall
	case s.hasWall && !d.isDefaultState(e):
		return familyWall
	default:
		return familyCPU
	}
}

// isDefaultState reports whether the state of a sample is STATE_DEFAULT.
func (d *decoder) isDefaultState(e *event) bool {
	position := d.position(e, slotState, poolState)
	return position >= 0 && d.isDefault[position]
}

// period returns the time that a sample of a family stands for, in nanoseconds, or 0 if it is not known.
func (d *decoder) period(of family) int64 {
	s := &d.settings
	fallback := int64(0)
	if rate := d.options.SampleRate; rate > 0 {
		fallback = int64(1e9 / rate)
	}
	switch of {
	case familyCPU:
		switch {
		case d.datadog:
			return cmp.Or(s.datadogCPU, fallback)
		case s.hasInterval && timers[s.event]:
			return cmp.Or(s.interval, fallback, defaultInterval)
		case s.event != "" && !timers[s.event]:
			return 0
		}
		return fallback
	case familyWall:
		switch {
		case d.datadog:
			return cmp.Or(s.datadogWall, fallback)
		case s.hasWall:
			return cmp.Or(s.wall, fallback, defaultWallInterval)
		case s.hasInterval:
			return cmp.Or(s.interval, fallback, defaultWallInterval)
		}
		return fallback
	}
	return 0
}
