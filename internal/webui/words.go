// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/rate"
)

// Words says what people read of a series. The page and otelprof say it alike.
type Words struct {
	SampleType, Unit string
	rate.Reading
	// From and To are the range; zero times are no bounds.
	From, To, Now time.Time
}

// NewWords returns the words for values without a reading: levels of snapshots or, if isLevel is not set, rates.
func NewWords(sampleType, unit string, isLevel bool) *Words {
	w := &Words{SampleType: sampleType, Unit: unit}
	w.Snapshots = isLevel
	return w
}

// Value writes the rate of the series, or the sum of the living snapshots. It is "-" if there is none.
func (w *Words) Value() string {
	switch {
	case !w.HasValue():
		return "-"
	case w.Snapshots && w.Sum == math.MaxInt64:
		return "≥ " + w.Write(w.Reading.Value())
	default:
		return w.Write(w.Reading.Value())
	}
}

// Write writes a rate, or a level of snapshots.
func (w *Words) Write(v float64) string {
	if w.Snapshots {
		return Quantity(w.Unit, v)
	}
	return Rate(w.SampleType, w.Unit, v)
}

// Change writes the change from another value, with its sign.
func (w *Words) Change(v float64) string {
	if v < 0 {
		return "−" + w.Write(-v)
	}
	return "+" + w.Write(v)
}

// Processes says how many processes the value is of: "3 processes, 0.40 cores each", "now, of 4 processes".
func (w *Words) Processes() string {
	switch {
	case !w.HasValue() && w.Snapshots:
		return "last"
	case !w.HasValue():
		return ""
	case w.Snapshots && w.isEnded():
		return "at the end, of " + Processes(w.Living)
	case w.Snapshots:
		return "now, of " + Processes(w.Living)
	}
	text, mean := Processes(w.Summary.Processes), int(math.Round(max(1, w.MeanProcesses)))
	if mean < w.Summary.Processes {
		text = Processes(mean) + " at a time of " + strconv.Itoa(w.Summary.Processes)
	}
	if w.Summary.Processes > 1 {
		text += ", " + w.Write(w.PerProcess) + " each"
	}
	return text
}

// isEnded reports whether the range ended in the past.
func (w *Words) isEnded() bool { return !w.To.IsZero() && w.Now.Sub(w.To) >= time.Minute }

// Coverage says how much of the time of the processes was profiled, and how much of the range has data: "17 % of 1 min in 15 min". It is "" of
// snapshots, and of profiles without a duration.
func (w *Words) Coverage() string {
	if w.Snapshots || !w.HasValue() {
		return ""
	}
	text, data := Percent(w.Summary.Coverage())+" of "+Length(seconds(w.Data)), seconds(w.Data).Round(time.Second)
	if w.From.IsZero() || w.To.IsZero() {
		return text
	}
	if length := w.To.Sub(w.From); data < length.Round(time.Second) {
		return text + " in " + Length(length)
	}
	return Percent(w.Summary.Coverage())
}

// Age says when the latest snapshot was: "12 s ago", or "2 min before" the end of a range in the past. It is "" of intervals.
func (w *Words) Age() string {
	switch {
	case !w.Snapshots || !w.HasValue():
		return ""
	case w.isEnded():
		return Length(w.Reading.Age(w.To)) + " before"
	case !w.To.IsZero():
		return Ago(w.Reading.Age(w.To))
	default:
		return Ago(w.Reading.Age(w.Now))
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Processes writes a number of processes.
func Processes(n int) string {
	if n == 1 {
		return "1 process"
	}
	return Count(n, "processe")
}

// Percent writes a share.
func Percent(share float64) string {
	switch percent := 100 * share; {
	case percent < 0.1:
		return "under 0.1 %"
	case percent < 1:
		return fmt.Sprintf("%.1f %%", percent)
	default:
		return fmt.Sprintf("%.0f %%", percent)
	}
}
