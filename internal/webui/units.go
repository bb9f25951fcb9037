// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"math"
	"strconv"
	"strings"
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
	chosen := scaleFor(v, scales)
	return digits(v/chosen.Size) + chosen.Name
}

// scaleFor returns the largest unit that is not above a value.
func scaleFor(v float64, scales []scale) scale {
	chosen := scales[0]
	for _, s := range scales {
		if s.Size <= math.Abs(v) {
			chosen = s
		}
	}
	return chosen
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

// Tick is a value of an axis.
type Tick struct {
	Value float64
	Text  string
}

// Ticks returns round values from 0 up to the first that is not below highest, all in one unit. Those of a rate are of Rate.
func Ticks(sampleType, unit string, isRate bool, highest float64) []Tick {
	const most = 4 // above 0
	size, name := axisUnit(sampleType, unit, isRate, highest)
	if highest <= 0 {
		return []Tick{{0, "0"}, {size, "1" + name}}
	}
	step := math.Pow(10, math.Floor(math.Log10(highest/size/most)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if step*factor*most >= highest/size*(1-1e-9) {
			step *= factor
			break
		}
	}
	ticks := []Tick{{0, "0"}}
	for i := 1.0; ticks[len(ticks)-1].Value < highest*(1-1e-9); i++ {
		ticks = append(ticks, Tick{i * step * size, digits(i*step) + name})
	}
	return ticks
}

// axisUnit returns the unit in which Rate or Quantity writes a value, with its size.
func axisUnit(sampleType, unit string, isRate bool, v float64) (size float64, name string) {
	if !isRate {
		chosen := scaleFor(v, scalesOf(unit))
		return chosen.Size, chosen.Name
	}
	if sampleType == "cpu" && IsNanoseconds(unit) {
		text := Cores(v / 1e9)
		_, name, _ = strings.Cut(text, " ")
		return map[string]float64{"cores": 1e9, "mcores": 1e6, "µcores": 1e3, "ncores": 1}[name], " " + name
	}
	per, factor := "/s", 1.0
	switch {
	case v == 0 || v >= leastRate:
	case v*60 >= leastRate:
		per, factor = "/min", 60
	default:
		per, factor = "/h", 3600
	}
	chosen := scaleFor(v*factor, scalesOf(unit))
	return chosen.Size / factor, chosen.Name + per
}
