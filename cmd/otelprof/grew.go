// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

func (a *app) grew() *cobra.Command {
	c := &cobra.Command{
		Use:   "grew PATH...",
		Short: "List what grew most: services and types, and the functions of one",
		Long: `Compare the last third of the range with the first one, and list services and
types by how much they grew: rates per second, and of snapshots the mean of the
living processes. Each profile type has the sample type that stands for it.

What grew beyond noise comes first, by what it added in proportion to what the
service and what all services together have. Then comes what is new, what
shrank, and what may be chance ("noise"), or has too few profiles to tell.

If one row is selected, its functions are listed, too.`,
		Example: `  otelprof grew --from -1d ./profiles
  otelprof grew --type inuse_space --service checkout ./profiles`,
		Args: paths,
	}
	sel := a.addSelection(c.Flags())
	most := c.Flags().IntP("number", "n", 30, "`NUMBER` of rows to print, and of functions")
	asJSON := c.Flags().Bool("json", false, "write a line of JSON for each row")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *most < 1 {
			return fmt.Errorf("--number is %d: must be 1 or more", *most)
		}
		source, err := a.source(args)
		if err != nil {
			return err
		}
		growths, err := source.Growths(c.Context(), sel)
		switch {
		case err != nil:
			return err
		case len(growths.Rows) == 0:
			return query.ErrEmpty
		case *asJSON:
			return writeGrowths(a.stdout, growths)
		}
		rows := growths.Rows[:min(*most, len(growths.Rows))]
		if err := writeTable(a.stdout, growthTable(rows)); err != nil || len(growths.Rows) > 1 {
			return err
		}
		return a.writeGrownFunctions(c, source, growths, *most)
	}
	return c
}

// growthTable returns the rows with a header.
func growthTable(rows []query.Growth) [][]string {
	table := [][]string{{"SERVICE", "TYPE", "SAMPLE TYPE", "BEFORE", "AFTER", "CHANGE", "", ""}}
	for i := range rows {
		row := &rows[i]
		w := webui.NewWords(row.SampleType, row.Unit, row.Snapshot)
		table = append(table, []string{
			shortCell(row.Service), shortCell(row.Type), cell(row.SampleType), cell(w.Write(row.Before)), cell(w.Write(row.After)),
			cell(w.Change(row.After - row.Before)), inPercent(row), growthNote(row),
		})
	}
	return table
}

// inPercent writes the change of a row as a part of the value before. It is "" if that is 0.
func inPercent(row *query.Growth) string {
	change, ok := row.Change()
	if !ok {
		return ""
	}
	return signed("%+.3g %%", 100*change)
}

func growthNote(row *query.Growth) string {
	switch {
	case row.Noise:
		return "noise"
	case row.IsNew:
		return "new"
	case row.HasEnded:
		return "ended"
	default:
		return ""
	}
}

// writeGrowths writes a line of JSON for each row.
func writeGrowths(w io.Writer, growths *query.Growths) error {
	encoder := json.NewEncoder(w)
	for i := range growths.Rows {
		row := &growths.Rows[i]
		err := encoder.Encode(struct {
			query.Kind

			Before   float64 `json:"before"`
			After    float64 `json:"after"`
			IsNew    bool    `json:"new"`
			HasEnded bool    `json:"ended"`
			Noise    bool    `json:"noise"`
			Weight   float64 `json:"weight"`
		}{row.Kind, row.Before, row.After, row.IsNew, row.HasEnded, row.Noise, row.Weight})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeGrownFunctions writes the functions of the only row. There are none if a third has no profiles.
func (a *app) writeGrownFunctions(c *cobra.Command, source *query.Source, growths *query.Growths, most int) error {
	if growths.Rows[0].IsNew || growths.Rows[0].HasEnded {
		return nil
	}
	compared, err := query.Compare(c.Context(), source, growths.Last, source, growths.First)
	switch {
	case errors.Is(err, query.ErrEmpty):
		a.note("No profile starts in the first or last third of the range, so functions are not compared")
		return nil
	case err != nil:
		return err
	}
	t := &topTable{ComparedType: compared.Shown(), cumulative: true, most: most}
	t.functions = compared.Functions(t.ComparedType)
	if _, err := io.WriteString(a.stdout, "\n"); err != nil {
		return err
	}
	return t.write(a.stdout, true)
}

// bar draws a value beside others, the largest of which is most.
func bar(v, most float64) string {
	const width = 24
	if most <= 0 {
		return ""
	}
	n := int(math.Round(width * max(0, v) / most))
	return "████████████████████████"[:n*len("█")]
}
