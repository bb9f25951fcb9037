// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

func isNanoseconds(unit string) bool { return unit == "nanoseconds" || unit == "ns" }

func isBytes(unit string) bool { return unit == "bytes" || unit == "By" }

// value writes a value of a chart: a level, or a rate by second.
func (k kind) value(v float64) string {
	switch {
	case k.Snapshot:
		return k.quantity(v)
	case k.isCPU():
		return digits(v/1e9) + " cores"
	default:
		return k.quantity(v) + "/s"
	}
}

// quantity writes a sum.
func (k kind) quantity(v float64) string {
	switch {
	case isNanoseconds(k.Unit):
		return digits(v/1e9) + " s"
	case isBytes(k.Unit):
		return scaled(v, 1024, " B", " KiB", " MiB", " GiB", " TiB", " PiB")
	case k.Unit == "count" || k.Unit == "":
		return scaled(v, 1000, "", "k", "M", "G", "T", "P")
	default:
		return scaled(v, 1000, "", "k", "M", "G", "T", "P") + " " + k.Unit
	}
}

func scaled(v, step float64, units ...string) string {
	i := 0
	for math.Abs(v) >= step && i < len(units)-1 {
		v /= step
		i++
	}
	return digits(v) + units[i]
}

// digits writes two or three digits.
func digits(v float64) string {
	const least = 1e-6 // smaller values have an exponent
	switch a := math.Abs(v); {
	case v == 0:
		return "0"
	case a < least:
		return strconv.FormatFloat(v, 'g', 2, 64)
	case a < 0.1:
		return strconv.FormatFloat(v, 'f', 1-int(math.Floor(math.Log10(a))), 64)
	case a < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
}

// count writes a number with a noun: "1 profile", "2 profiles".
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
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

// shortly writes a duration to the second, and a long one in days.
func shortly(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%.0fd", d.Hours()/24)
	}
	return withoutZeros(d.Round(time.Second))
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
