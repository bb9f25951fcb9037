// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

func (a *app) ls() *cobra.Command {
	var sel selection
	var asJSON bool
	c := &cobra.Command{
		Use:   "ls PATH...",
		Short: "List services, profile types, time range, profiles, samples and sums",
		Long: `List the totals by service, profile type and sample type.

Of snapshots, such as the heap in use, samples and sum are those of the last one of each
resource. These rows are marked with "last".`,
		Example: `  otelprof ls ./profiles
  otelprof ls --service checkout --from -1h ./profiles
  otelprof ls --json ./profiles | jq .sum`,
		Args: paths,
		RunE: func(c *cobra.Command, args []string) error {
			selected, err := sel.parse(time.Now())
			if err != nil {
				return err
			}
			source, finish, err := a.source(args)
			if err != nil {
				return err
			}
			defer finish()
			rows, err := source.List(c.Context(), selected)
			finish()
			switch {
			case err != nil:
				return err
			case len(rows) == 0 && !a.wrong:
				return query.ErrEmpty
			case asJSON:
				return writeLines(a.stdout, rows)
			default:
				return writeTable(a.stdout, rows)
			}
		},
	}
	sel.addTo(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "write a line of JSON for each row")
	return c
}

// writeLines writes each value as a line of JSON.
func writeLines[T any](w io.Writer, values []T) error {
	encoder := json.NewEncoder(w)
	for _, value := range values {
		if err := encoder.Encode(value); err != nil {
			return err
		}
	}
	return nil
}

func writeTable(w io.Writer, rows []query.Row) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "SERVICE\tTYPE\tSAMPLE TYPE\tFROM\tTO\tPROFILES\tSAMPLES\tSUM\t")
	for _, r := range rows {
		last := ""
		if r.Snapshot {
			last = "last"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", cell(r.Service), cell(r.Type), cell(r.SampleType),
			timeOf(r.Start), timeOf(r.End), r.Profiles, r.Samples, quantity(r.Sum, r.Unit), last)
	}
	return table.Flush()
}

// cell makes text fit into a table: without control characters, and not empty.
func cell(text string) string {
	if text == "" {
		return "-"
	}
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

func timeOf(nanoseconds uint64) string {
	if nanoseconds == 0 {
		return "-"
	}
	return time.Unix(0, int64(nanoseconds)).UTC().Format("2006-01-02T15:04:05Z")
}

// quantity writes a sum with its unit.
func quantity(sum int64, unit string) string {
	switch unit {
	case "nanoseconds", "ns":
		d := time.Duration(sum)
		if d.Abs() >= time.Second {
			d = d.Round(10 * time.Millisecond)
		}
		return d.String()
	case "bytes", "By":
		return binarySize(float64(sum))
	case "count", "":
		return strconv.FormatInt(sum, 10)
	default:
		return strconv.FormatInt(sum, 10) + " " + cell(unit)
	}
}

func binarySize(n float64) string {
	unit := 0
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for (n >= 1024 || n <= -1024) && unit < len(units)-1 {
		n /= 1024
		unit++
	}
	return strings.TrimSuffix(strconv.FormatFloat(n, 'f', 1, 64), ".0") + " " + units[unit]
}
