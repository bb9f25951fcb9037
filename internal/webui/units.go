// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"math"
	"strconv"
)

// scale is a unit as readers write it, with the space before it. The script of the flame graph has the scales of a
// page, too.
type scale struct {
	Size float64 `json:"size"`
	Name string  `json:"name"`
}

// scalesOf returns the units for values in a unit of pprof, the smallest first.
func scalesOf(unit string) []scale {
	times := []scale{{1, " ns"}, {1e3, " µs"}, {1e6, " ms"}, {1e9, " s"}, {60e9, " min"}, {3600e9, " h"}}
	switch unit {
	case "nanoseconds", "ns":
		return times
	case "microseconds", "us":
		return inUnitsOf(times, 1e3)
	case "milliseconds", "ms":
		return inUnitsOf(times, 1e6)
	case "seconds", "s":
		return inUnitsOf(times, 1e9)
	case "bytes", "By":
		return []scale{{1, " B"}, {1 << 10, " KiB"}, {1 << 20, " MiB"}, {1 << 30, " GiB"}, {1 << 40, " TiB"}}
	}
	if unit != "" && unit != "count" {
		unit = " " + unit
	} else {
		unit = ""
	}
	return []scale{{1, unit}, {1e3, "k" + unit}, {1e6, "M" + unit}, {1e9, "G" + unit}, {1e12, "T" + unit}}
}

// inUnitsOf divides the sizes.
func inUnitsOf(scales []scale, size float64) []scale {
	for i := range scales {
		scales[i].Size /= size
	}
	return scales
}

// quantity writes a value with three digits, and its unit.
func quantity(v float64, scales []scale) string {
	chosen := scales[0]
	for _, s := range scales {
		if s.Size <= math.Abs(v) {
			chosen = s
		}
	}
	return digits(v/chosen.Size) + chosen.Name
}

// percentage writes the share of a value.
func percentage(v, total float64) string {
	if total == 0 {
		return ""
	}
	return digits(100*v/total) + " %"
}

// digits writes three digits, and all before the point.
func digits(v float64) string {
	const three = 100
	if math.Abs(v) >= three {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
