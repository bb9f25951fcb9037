// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

func isNanoseconds(unit string) bool { return unit == "nanoseconds" || unit == "ns" }

func isBytes(unit string) bool { return unit == "bytes" || unit == "By" }

// value writes a level, or a rate.
func (k kind) value(v float64) string {
	const seconds, least = 60, 0.1 // few are by minute or hour
	switch {
	case k.Snapshot:
		return k.quantity(v)
	case k.isCPU():
		return metric(v/1e9, " ", "cores")
	case v == 0 || math.Abs(v) >= least:
		return k.quantity(v) + "/s"
	case math.Abs(v)*seconds >= least:
		return k.quantity(v*seconds) + "/min"
	default:
		return k.quantity(v*seconds*seconds) + "/h"
	}
}

// quantity writes a sum.
func (k kind) quantity(v float64) string {
	switch {
	case isNanoseconds(k.Unit):
		return metric(v/1e9, " ", "s")
	case isBytes(k.Unit):
		return scaled(v, 1024, " ", "B", "KiB", "MiB", "GiB", "TiB", "PiB")
	case k.Unit == "count" || k.Unit == "":
		return scaled(v, 1000, "", "", "k", "M", "G", "T", "P")
	default:
		return scaled(v, 1000, "", "", "k", "M", "G", "T", "P") + " " + k.Unit
	}
}

// metric writes a value with its unit, and a small one with a prefix of it.
func metric(v float64, space, unit string) string {
	prefixes := []string{"", "m", "µ", "n"}
	i := 0
	for v != 0 && math.Abs(v) < 0.1 && i < len(prefixes)-1 {
		v *= 1000
		i++
	}
	return digits(v) + space + prefixes[i] + unit
}

// scaled writes a value with the largest unit that leaves at least 1 of it.
func scaled(v, step float64, space string, units ...string) string {
	if math.Abs(v) < 1 {
		return metric(v, space, units[0])
	}
	i := 0
	for math.Abs(v) >= step && i < len(units)-1 {
		v /= step
		i++
	}
	return digits(v) + space + units[i]
}

// digits writes two or three digits.
func digits(v float64) string {
	decimals := 2
	switch a := math.Abs(v); {
	case v == 0 || a >= 100:
		decimals = 0
	case a >= 10:
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// count writes a number with a noun: "1 profile", "12,345 profiles".
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0 && len(digits) > 4; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits + " " + noun
}

// spanText writes a time range.
func spanText(sel *query.Selection) string {
	from, to := sel.From.UTC(), sel.To.UTC()
	layout := time.DateTime
	if from.YearDay() == to.YearDay() && from.Year() == to.Year() {
		layout = time.TimeOnly
	}
	return from.Format(time.DateTime) + " to " + to.Format(layout) + " UTC"
}

// lengthText writes a duration to the second, with at most two units.
func lengthText(d time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if n := d / unit.length; n > 0 && len(parts) < 2 && (unit.name != "d" || d > 24*time.Hour) {
			parts = append(parts, fmt.Sprintf("%d %s", n, unit.name))
			d %= unit.length
		}
	}
	return cmp.Or(strings.Join(parts, " "), "1 s")
}

// withoutZeros writes a duration without the units at its end that are zero.
func withoutZeros(d time.Duration) string {
	text := d.String()
	if before, found := strings.CutSuffix(text, "m0s"); found {
		text = before + "m"
	}
	if before, found := strings.CutSuffix(text, "h0m"); found {
		text = before + "h"
	}
	return text
}

// ago writes how long ago something was.
func ago(d time.Duration) string {
	switch {
	case d < -time.Minute:
		return "in the future"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s ago", max(0, int(d.Seconds())))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%d d ago", int(d.Hours()/24))
	}
}
