// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/otelcol-profiles/otelcol-profiles/cmd/otelprof/internal/regression"
)

var reportFormats = []string{"text", "markdown", "json"}

func (a *app) diff() *cobra.Command {
	c := &cobra.Command{
		Use:   "diff BASE NEW",
		Short: "List functions whose share changed beyond noise, to fail in CI",
		Long: `Compare profiles of two versions: list the functions whose share of the total
changed beyond noise. The share is the cumulative one: of samples with the
function in their stack. Functions are compared by name.

Each record or file of a side is a run, and of snapshots the last one of each
process. Give several runs on each side, such as 10 files in a directory: the
test is a t test with a quasi-binomial variance, which the differences between
the runs of a side measure. The false discovery rate over all functions is
0.5 % (Benjamini-Hochberg). With one run, only large changes are significant.

JSON has all functions compared, with shares between 0 and 1: base and new (each
cumulative and flat), change (cumulative) with margin (half of its 95 %
confidence interval), p (adjusted), significant, and fails.

Exit codes: 0; 1 if a share grew significantly by more than --fail-above;
2 for any error.`,
		Example: `  otelprof diff --fail-above 2% ./base ./new
  otelprof diff --type cpu --format markdown ./profiles ./profiles
  otelprof diff --type cpu --base-to -1h --from -1h ./profiles ./profiles`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%s: must be BASE and NEW, each a file or directory, or - for standard input", plural(len(args), "PATH"))
			}
			return nil
		},
	}
	compared := a.addSides(c.Flags(), " of BASE, if it is not that of NEW")
	report := &report{Level: regression.Level, MinShare: 0.01}
	c.Flags().Func("fail-above", "`SHARE`, such as 5%: exit with 1 if the share of a function grew significantly by more than these percentage points", func(text string) error {
		share, err := parseShare(text)
		report.FailAbove = &share
		return err
	})
	c.Flags().Func("min-share", "`SHARE` of the total that a function must have on a side (default 1%)", func(text string) (err error) {
		report.MinShare, err = parseShare(text)
		return err
	})
	format := c.Flags().String("format", "text", "`FORMAT` of the report: "+strings.Join(reportFormats, ", "))
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(reportFormats, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, args []string) error {
		a.exitError = exitUsage
		if !slices.Contains(reportFormats, *format) {
			return fmt.Errorf("--format is %q: must be one of %s", *format, strings.Join(reportFormats, ", "))
		}
		compared.base = args[:1]
		defer compared.symbolize.close(a)
		source, baseSource, err := a.sources(c.Context(), args[1:], compared)
		if err != nil {
			return err
		}
		base, err := a.readRuns(c.Context(), baseSource, compared.ofBase(), nil)
		if err != nil {
			return fmt.Errorf("BASE: %w", err)
		}
		after, err := a.readRuns(c.Context(), source, compared.Selection, base.sampleType)
		if err != nil {
			return fmt.Errorf("NEW: %w", err)
		}
		if skipped := base.earlier + after.earlier; skipped > 0 {
			a.note("Only the last snapshot of each resource counts; earlier ones skipped: %d", skipped)
		}
		if few := min(base.side.Runs, after.side.Runs); few < 3 {
			a.note("%s on a side: only large changes are significant; give 5 or more, so that the difference between runs is measured", plural(few, "run"))
		}
		report.compare(base, after)
		a.worse = report.Failed
		return report.write(a.stdout, *format)
	}
	return c
}

// parseShare parses a percentage.
func parseShare(text string) (float64, error) {
	number, isPercentage := strings.CutSuffix(strings.TrimSpace(text), "%")
	percent, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !isPercentage || !(percent >= 0 && percent <= 100) {
		return 0, errors.New("must be a percentage between 0% and 100%, such as 5%")
	}
	return percent / 100, nil
}

// report is the result of a comparison, and its JSON. Shares are between 0 and 1.
type report struct {
	SampleType string           `json:"sample_type"`
	Unit       string           `json:"unit"`
	Base       *regression.Side `json:"base"`
	New        *regression.Side `json:"new"`
	MinShare   float64          `json:"min_share"`
	FailAbove  *float64         `json:"fail_above,omitempty"`
	Level      float64          `json:"false_discovery_rate"`
	Functions  []reportedChange `json:"functions"` // all that were compared
	Failed     bool             `json:"failed"`
}

type reportedChange struct {
	regression.Change
	Fails bool `json:"fails"` // it grew by more than fail_above
}

func (r *report) compare(base, after *runs) {
	r.SampleType, r.Unit = base.sampleType.Type, base.sampleType.Unit
	r.Base, r.New, r.Functions = &base.side, &after.side, []reportedChange{}
	for _, c := range regression.Compare(r.Base, r.New, r.MinShare) {
		fails := r.FailAbove != nil && c.Significant && c.Difference > *r.FailAbove
		r.Failed = r.Failed || fails
		r.Functions = append(r.Functions, reportedChange{c, fails})
	}
}

func (r *report) write(w io.Writer, format string) error {
	if format == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	isMarkdown := format == "markdown"
	var rows [][]string
	for i := range r.Functions {
		if c := &r.Functions[i]; c.Significant {
			rows = append(rows, c.row(isMarkdown))
		}
	}
	if _, err := io.WriteString(w, r.summary(len(rows), isMarkdown)); err != nil || len(rows) == 0 {
		return err
	}
	header := []string{"CHANGE", "BASE", "NEW", "BASE FLAT", "NEW FLAT", "P", "FUNCTION"}
	if isMarkdown {
		return writeMarkdown(w, header, rows)
	}
	return writeTable(w, append([][]string{header}, rows...))
}

// summary is the text before the table.
func (r *report) summary(changed int, isMarkdown bool) string {
	var lines []string
	if r.FailAbove != nil {
		failing := 0
		for i := range r.Functions {
			if r.Functions[i].Fails {
				failing++
			}
		}
		verdict := "Pass"
		if r.Failed {
			verdict = "Fail"
		}
		if isMarkdown {
			verdict = "**" + verdict + "**"
		}
		lines = append(lines, fmt.Sprintf("%s: the share of %s grew by more than %.4g percentage points.", verdict, plural(failing, "function"), *r.FailAbove*100))
	}
	lines = append(lines,
		fmt.Sprintf("%s with %s of %s or more compared, %d changed beyond noise.", plural(len(r.Functions), "function"), percent(r.MinShare), cell(r.SampleType), changed),
		fmt.Sprintf("BASE: %s with %s. NEW: %s with %s.", plural(r.Base.Runs, "run"), r.quantity(r.Base.Total), plural(r.New.Runs, "run"), r.quantity(r.New.Total)))
	if changed > 0 {
		lines = append(lines, "Shares are cumulative, changes in percentage points with their 95 % confidence intervals.", "")
	}
	return strings.Join(lines, "\n") + "\n"
}

func (r *report) quantity(total float64) string {
	const most = 1 << 62
	return quantity(int64(min(total, most)), r.Unit)
}

// row is a row of the table.
func (c *reportedChange) row(isMarkdown bool) []string {
	change := fmt.Sprintf("%+.2f ± %.2f", c.Difference*100, c.Margin*100)
	name := cell(c.Function)
	if isMarkdown {
		name = "`" + strings.NewReplacer("`", "'", "|", `\|`).Replace(name) + "`"
		if c.Fails {
			change = "**" + change + "**"
		}
	} else if c.Fails {
		change += " !"
	}
	return []string{change, percent(c.Base.Cumulative), percent(c.New.Cumulative), percent(c.Base.Flat), percent(c.New.Flat), fmt.Sprintf("%.1g", c.P), name}
}

func percent(share float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(share*100, 'f', 2, 64), ".00") + " %"
}

func writeMarkdown(w io.Writer, header []string, rows [][]string) error {
	line := func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
	var text strings.Builder
	text.WriteString(line(header))
	text.WriteString("|" + strings.Repeat("--:|", len(header)-1) + ":--|\n")
	const most = 50 // comments have a limit
	for _, row := range rows[:min(len(rows), most)] {
		text.WriteString(line(row))
	}
	if more := len(rows) - most; more > 0 {
		fmt.Fprintf(&text, "\n%s more changed less.\n", plural(more, "function"))
	}
	_, err := io.WriteString(w, text.String())
	return err
}
