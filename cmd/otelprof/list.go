// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

func (a *app) ls() *cobra.Command {
	c := &cobra.Command{
		Use:   "ls PATH...",
		Short: "List services and profile types, with rates, sums and time range",
		Long: `List rates and totals by service, profile type and sample type.

The rate is that of the series: per second, of all processes, whether they are
profiled at the same time or not. Beside it are the processes, and how much of
their time was profiled. Of snapshots, such as the heap in use, it is the sum of
the living processes now, or at the end of the range, with its age.

With --step, there is a row for each step: the rate in it, or of snapshots the
mean of the sum of the living processes.

A sum that does not fit into 64 bits is marked with >= or <=, and in JSON with
"saturated".`,
		Example: `  otelprof ls ./profiles
  otelprof ls --service checkout --from -1h ./profiles
  otelprof ls --step 1m --type inuse_space --from -1h ./profiles
  otelprof ls --json ./profiles | jq .sum`,
		Args: paths,
	}
	sel := a.addSelection(c.Flags())
	asJSON := c.Flags().Bool("json", false, "write a line of JSON for each row")
	var step time.Duration
	c.Flags().Func("step", "`LENGTH` of the steps to list values by, such as 1m", func(text string) (err error) {
		step, err = parseStep(text)
		return err
	})
	c.RunE = func(c *cobra.Command, args []string) error {
		source, err := a.source(args)
		if err != nil {
			return err
		}
		if step > 0 {
			return a.listSteps(c.Context(), source, sel, step, *asJSON)
		}
		totals, err := source.Totals(c.Context(), sel)
		rows := make([]*rated, len(totals))
		for i := range totals {
			rows[i] = a.ratedOf(&totals[i], sel)
		}
		switch {
		case err != nil:
			return err
		case len(rows) == 0:
			return query.ErrEmpty
		case *asJSON:
			encoder := json.NewEncoder(a.stdout)
			for _, row := range rows {
				if err := encoder.Encode(row); err != nil {
					return err
				}
			}
			return nil
		default:
			return writeTable(a.stdout, tableOf(rows))
		}
	}
	return c
}

// tableOf returns the rows with those columns first that identify a row and say its rate.
func tableOf(rows []*rated) [][]string {
	table := [][]string{{"SERVICE", "TYPE", "SAMPLE TYPE", "RATE", "OF", "PROFILED", "PROFILES", "SAMPLES", "SUM", "FROM", "TO"}}
	alike := map[query.Kind]int{} // how many rows differ in their period only
	for _, r := range rows {
		alike[withoutPeriod(r.Kind)]++
	}
	for _, r := range rows {
		sampleType := cell(r.SampleType)
		if alike[withoutPeriod(r.Kind)] > 1 {
			sampleType += " per " + cell(r.PeriodType)
		}
		table = append(table, []string{
			shortCell(r.Service), shortCell(r.Type), sampleType, r.written(), r.of(), r.coverage(), strconv.Itoa(r.Profiles), strconv.Itoa(r.Samples),
			sumOf(&r.Row), timeOf(r.Start), timeOf(r.End),
		})
	}
	return table
}

func withoutPeriod(k query.Kind) query.Kind {
	k.PeriodType, k.PeriodUnit = "", ""
	return k
}

// writeTable aligns the columns.
func writeTable(w io.Writer, rows [][]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(table, strings.Join(row, "\t")) // Flush returns the error
	}
	return table.Flush()
}

// cell makes text fit into a table: without control characters, and not empty.
func cell(text string) string {
	return cmp.Or(strings.ReplaceAll(webui.Printable(text), "\t", `\t`), "-")
}

// shortCell cuts a long name, which would widen the cells of all rows. JSON has it as it is.
func shortCell(text string) string {
	const most = 100
	if runes := []rune(cell(text)); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return cell(text)
}

func timeOf(nanoseconds uint64) string {
	if nanoseconds == 0 {
		return "-"
	}
	return query.TimeOf(nanoseconds).Format(time.RFC3339)
}

// sumOf writes the sum of a row.
func sumOf(r *query.Row) string {
	sum := quantity(r.Sum, r.Unit)
	switch {
	case !r.Saturated:
		return sum
	case r.Sum < 0:
		return "<= " + sum
	default:
		return ">= " + sum
	}
}

// quantity writes a sum with its unit: times and sizes in that which a person takes, rounded, and counts as they are.
func quantity(sum int64, unit string) string {
	switch {
	case webui.HasScale(unit):
		return webui.Quantity(unit, float64(sum))
	case unit == "count" || unit == "":
		return strconv.FormatInt(sum, 10)
	default:
		return strconv.FormatInt(sum, 10) + " " + cell(unit)
	}
}
