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

// nanoseconds are the units of time.
var nanoseconds = map[string]float64{
	"nanoseconds": 1, "ns": 1, "microseconds": 1e3, "us": 1e3, "milliseconds": 1e6, "ms": 1e6, "seconds": 1e9, "s": 1e9,
	"minutes": 60e9, "min": 60e9, "hours": 3600e9, "h": 3600e9,
}

// scalesOf returns the units for values in a unit of pprof, the smallest first.
func scalesOf(unit string) []scale {
	if size := nanoseconds[unit]; size > 0 {
		return []scale{{1 / size, " ns"}, {1e3 / size, " µs"}, {1e6 / size, " ms"}, {1e9 / size, " s"}, {60e9 / size, " min"}, {3600e9 / size, " h"}}
	}
	switch unit {
	case "bytes", "By":
		return []scale{{1, " B"}, {1 << 10, " KiB"}, {1 << 20, " MiB"}, {1 << 30, " GiB"}, {1 << 40, " TiB"}, {1 << 50, " PiB"}, {1 << 60, " EiB"}}
	case "", "count":
		unit = ""
	default:
		unit = " " + unit
	}
	return []scale{{1, unit}, {1e3, "k" + unit}, {1e6, "M" + unit}, {1e9, "G" + unit}, {1e12, "T" + unit}}
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
