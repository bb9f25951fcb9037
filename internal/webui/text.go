// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// IsNanoseconds reports whether a unit is nanoseconds.
func IsNanoseconds(unit string) bool { return unit == "nanoseconds" || unit == "ns" }

// IsBytes reports whether a unit is bytes.
func IsBytes(unit string) bool { return unit == "bytes" || unit == "By" }

// HasScale reports whether a unit is one of time or of size.
func HasScale(unit string) bool { return IsBytes(unit) || nanoseconds[unit] > 0 }

// Quantity writes a sum of values with a unit of OTLP or pprof.
func Quantity(unit string, v float64) string { return quantity(v, scalesOf(unit)) }

// Cores writes CPU time as a number of cores, with two or three digits.
func Cores(v float64) string {
	prefixes := []string{"", "m", "µ", "n"}
	i := 0
	for v != 0 && math.Abs(v) < 0.1 && i < len(prefixes)-1 {
		v *= 1000
		i++
	}
	decimals := 2
	switch a := math.Abs(v); {
	case v == 0 || a >= 100:
		decimals = 0
	case a >= 10:
		decimals = 1
	}
	return strconv.FormatFloat(v, 'f', decimals, 64) + " " + prefixes[i] + "cores"
}

// leastRate is the least number per second, minute or hour that Rate writes as such.
const leastRate = 0.1

// Rate writes what values with a unit are per second: CPU time as cores, and little by minute or hour.
func Rate(sampleType, unit string, perSecond float64) string {
	const seconds = 60
	switch v := math.Abs(perSecond); {
	case sampleType == "cpu" && IsNanoseconds(unit):
		return Cores(perSecond / 1e9)
	case v == 0 || v >= leastRate:
		return Quantity(unit, perSecond) + "/s"
	case v*seconds >= leastRate:
		return Quantity(unit, perSecond*seconds) + "/min"
	default:
		return Quantity(unit, perSecond*seconds*seconds) + "/h"
	}
}

// Count writes a number with a noun: "1 profile", "12,345 profiles".
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0 && len(digits) > 4; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits + " " + noun
}

// Length writes a duration to the second, with at most two units.
func Length(d time.Duration) string {
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

// WithoutZeros writes a duration without the units at its end that are zero.
func WithoutZeros(d time.Duration) string {
	text := d.String()
	if before, found := strings.CutSuffix(text, "m0s"); found {
		text = before + "m"
	}
	if before, found := strings.CutSuffix(text, "h0m"); found {
		text = before + "h"
	}
	return text
}

// Ago writes how long ago something was.
func Ago(d time.Duration) string {
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

// Printable returns text as a terminal can show it: control characters other than tabs, which symbols of the kernel have,
// and invalid bytes are escaped as in Go.
func Printable(text string) string {
	quoted := strconv.Quote(text)
	return unquote.Replace(quoted[1 : len(quoted)-1])
}

var unquote = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\t`, "\t")
