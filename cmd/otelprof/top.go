// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

func (a *app) top() *cobra.Command {
	c := &cobra.Command{
		Use:   "top PATH...",
		Short: "Print the functions by flat or cumulative value, or by its change",
		Long: `Print the functions by flat or cumulative value, as go tool pprof -top does.
Profiles of all selected services are summed. If they are of several profile
types, select one with --type.

The first line is the rate of the series, as ls writes it, or of snapshots the
sum of the living processes. The duration is the profiled time of all processes.

With a base, the functions are those whose rates changed most. If the base has
another service or label, such as the stable version beside a canary, the rates
are those of one process on average. "noise" marks changes that may be chance,
by the number of samples.`,
		Example: `  otelprof top --service checkout --type cpu ./profiles
  otelprof top --type inuse_space --cum ./profiles
  otelprof top --type cpu --base-from -2h --base-to -1h --from -1h ./profiles
  otelprof top --type cpu --base-service checkout --base-to -1h ./profiles
  otelprof top --type cpu --trace-id 4bf92f3577b34da6a3ce929d0e0e4736 ./profiles`,
		Args: paths,
	}
	compared := a.addComparison(c.Flags())
	t := &topTable{}
	c.Flags().BoolVar(&t.cumulative, "cum", false, "sort by cumulative value")
	c.Flags().IntVarP(&t.most, "nodes", "n", 0, "`NUMBER` of functions to print (default: all that matter)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if t.most < 0 {
			return fmt.Errorf("--nodes is %d: must be 0 or more", t.most)
		}
		comparison, err := a.compare(c.Context(), args, compared)
		if err != nil {
			return err
		}
		if err := query.CheckTotals(comparison.New.Pprof); err != nil {
			return err
		}
		t.ComparedType = comparison.Shown()
		t.functions = comparison.Functions(t.ComparedType)
		head := a.headline(comparison)
		if comparison.Base == nil {
			head += t.head(comparison.New)
		}
		if _, err := io.WriteString(a.stdout, head); err != nil {
			return err
		}
		return t.write(a.stdout, comparison.Base != nil)
	}
	return c
}

// topTable is what top prints.
type topTable struct {
	*query.ComparedType

	functions  []query.FunctionChange
	cumulative bool
	most       int // functions; 0 for all that matter
}

// write writes the table. That of a comparison has rates, the other one sums.
func (t *topTable) write(w io.Writer, isComparison bool) error {
	rows, omitted := t.important(isComparison)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(function string, cells ...string) {
		_, _ = fmt.Fprintln(table, strings.Join(cells, "\t")+"\t  "+function) // Flush returns the error
	}
	if isComparison {
		line("FUNCTION", "FLAT CHANGE", "BASE", "NEW", "CUM CHANGE", "BASE", "NEW", "")
		for i := range rows {
			f, words := &rows[i], webui.NewWords(t.Type, t.Unit, t.Basis != query.Rates)
			note := ""
			if f.SelfNoise && f.Noise {
				note = "noise"
			}
			line(cell(f.Function), cell(words.Change(f.SelfChange())), cell(words.Write(f.Base.Self)), cell(words.Write(f.New.Self)),
				cell(words.Change(f.TotalChange())), cell(words.Write(f.Base.Total)), cell(words.Write(f.New.Total)), note)
		}
	} else {
		line("FUNCTION", "FLAT", "FLAT %", "SUM %", "CUM", "CUM %")
		total, sum := t.New.Size, 0.0
		for i := range rows {
			flat, cum := rows[i].New.Self/t.New.Scale, rows[i].New.Total/t.New.Scale
			sum += flat
			line(cell(rows[i].Function), floatQuantity(flat, t.Unit), part(flat, total), part(sum, total), floatQuantity(cum, t.Unit), part(cum, total))
		}
	}
	if err := table.Flush(); err != nil || omitted == 0 {
		return err
	}
	of := "with less"
	if isComparison {
		of = "that changed less"
	}
	_, err := fmt.Fprintf(w, "%s %s left out\n", webui.Count(omitted, "function"), of)
	return err
}

// part writes a part of a total in percent.
func part(v, total float64) string {
	if total == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.2f %%", 100*v/total)
}

// important returns the functions to print, in their order, and how many are left out: by default those that have less than 0.5 % of the
// total, as in pprof, and of a comparison those that changed by less.
func (t *topTable) important(isComparison bool) (rows []query.FunctionChange, omitted int) {
	const part = 0.005
	least := math.Floor(part*t.New.Size) * t.New.Scale
	if isComparison {
		least = part * max(math.Abs(t.Base.Value()), math.Abs(t.New.Value()))
	}
	for i := range t.functions {
		f := &t.functions[i]
		size := max(change(f, false), change(f, true))
		if isComparison && size == 0 || t.most == 0 && size < least {
			continue
		}
		rows = append(rows, *f)
	}
	slices.SortStableFunc(rows, func(a, b query.FunctionChange) int {
		flat, cum := cmp.Compare(change(&b, false), change(&a, false)), cmp.Compare(change(&b, true), change(&a, true))
		if t.cumulative {
			return cmp.Or(cum, flat)
		}
		return cmp.Or(flat, cum)
	})
	if t.most > 0 {
		rows = rows[:min(t.most, len(rows))]
	}
	return rows, len(t.functions) - len(rows)
}

// change is that of a function without its sign; without a base, its value.
func change(f *query.FunctionChange, cumulative bool) float64 {
	if cumulative {
		return math.Abs(f.TotalChange())
	}
	return math.Abs(f.SelfChange())
}

// head says what the values of a selection without a base are of.
func (t *topTable) head(side *query.Side) string {
	text := "Type: " + cell(t.Type)
	if side.Pprof.TimeNanos > 0 {
		text += ", from " + timeOf(uint64(side.Pprof.TimeNanos))
	}
	text += "\nTotal: " + floatQuantity(t.New.Total, t.Unit)
	if t.Basis == query.Rates {
		text += " in " + webui.Length(time.Duration(t.New.Covered*float64(time.Second))) + " of profiled time"
	}
	return text + "\n"
}

// floatQuantity is quantity for a sum of floating-point numbers.
func floatQuantity(v float64, unit string) string {
	const most = 1 << 62
	return quantity(int64(math.Round(max(-most, min(v, most)))), unit)
}
