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
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

var reportFormats = []string{"text", "markdown", "json"}

func (a *app) diff() *cobra.Command {
	c := &cobra.Command{
		Use:   "diff BASE NEW",
		Short: "List functions whose rate changed beyond noise, to fail in CI",
		Long: `Compare profiles of two versions: list the functions whose rate changed beyond
noise. The rate is the cumulative one, per second of profiled time of a process:
of samples with the function in their stack. Profiles without a duration have no
rate: of these, and of snapshots, the values of a run are compared. Functions
are compared by name.

Each record or file of a side is a run, and of snapshots the last one of each
process. Give several runs on each side, such as 10 files in a directory: the
test is a t test with a quasi-Poisson variance, which the differences between
the runs of a side measure. The false discovery rate over all functions is
0.5 % (Benjamini-Hochberg). With one run, only large changes are significant.

JSON has all functions compared, with values per second: base and new (each
cumulative and flat), change (cumulative) with margin (half of its 95 %
confidence interval) and part (of the rate of all of BASE), p (adjusted),
significant, and fails.

Exit codes: 0; 1 if a rate grew significantly by more than --fail-above;
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
	c.Flags().Func("fail-above", "`PERCENT`, such as 5%: exit with 1 if the rate of a function grew significantly by more than this part of the rate of all of BASE", func(text string) error {
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
		if few := min(base.plain.Runs, after.plain.Runs); few < 3 {
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

// report is the result of a comparison, and its JSON. Shares and parts are between 0 and 1.
type report struct {
	SampleType string           `json:"sample_type"`
	Unit       string           `json:"unit"`
	Basis      query.Basis      `json:"basis"` // rate, level or value
	Base       *regression.Side `json:"base"`
	New        *regression.Side `json:"new"`
	MinShare   float64          `json:"min_share"`
	FailAbove  *float64         `json:"fail_above,omitempty"`
	Level      float64          `json:"false_discovery_rate"`
	Functions  []reportedChange `json:"functions"` // all that were compared
	Failed     bool             `json:"failed"`

	base, after *runs
}

type reportedChange struct {
	regression.Change
	Part  float64 `json:"part"`  // the change as a part of the rate of all of the base
	Fails bool    `json:"fails"` // it grew by more than fail_above
}

func (r *report) compare(base, after *runs) {
	r.SampleType, r.Unit = base.sampleType.Type, base.sampleType.Unit
	r.base, r.after = base, after
	switch {
	case base.isRate && after.isRate:
		r.Basis, r.Base, r.New = query.Rates, &base.side, &after.side
	case len(base.snapshots)+len(after.snapshots) > 0:
		r.Basis, r.Base, r.New = query.Levels, &base.plain, &after.plain
	default:
		r.Basis, r.Base, r.New = query.Values, &base.plain, &after.plain
	}
	r.Functions = []reportedChange{}
	for _, c := range regression.Compare(r.Base, r.New, r.MinShare) {
		part := c.Difference / r.Base.Rate()
		fails := r.FailAbove != nil && c.Significant && part > *r.FailAbove
		r.Failed = r.Failed || fails
		r.Functions = append(r.Functions, reportedChange{c, part, fails})
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
			rows = append(rows, r.row(c, isMarkdown))
		}
	}
	if _, err := io.WriteString(w, r.summary(len(rows), isMarkdown)); err != nil || len(rows) == 0 {
		return err
	}
	header := []string{"CHANGE", "OF BASE", "BASE", "NEW", "BASE FLAT", "NEW FLAT", "P", "FUNCTION"}
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
		lines = append(lines, fmt.Sprintf("%s: the %s of %s grew by more than %.4g %% of all of BASE.", verdict, r.Basis, plural(failing, "function"), *r.FailAbove*100))
	}
	lines = append(lines,
		fmt.Sprintf("%s with %s of %s or more compared, %d changed beyond noise.", plural(len(r.Functions), "function"), percent(r.MinShare), cell(r.SampleType), changed),
		r.side("BASE", r.Base, r.base), r.side("NEW", r.New, r.after))
	if r.Basis == query.Values {
		lines = append(lines, "Some profiles state no duration, so there is no rate: values of a run are compared.")
	}
	if changed > 0 {
		lines = append(lines, "Changes are cumulative, with their 95 % confidence intervals.", "")
	}
	return strings.Join(lines, "\n") + "\n"
}

// side says what a side has, and how much of the time of its processes was profiled.
func (r *report) side(name string, side *regression.Side, of *runs) string {
	each := "a run"
	if r.Basis == query.Rates {
		each = "a process"
	}
	text := fmt.Sprintf("%s: %s with %s, %s %s", name, plural(side.Runs, "run"), r.quantity(side.Total), r.value(side.Rate()), each)
	if coverage := of.words.Coverage(); coverage != "" {
		text += ", profiled " + coverage
	}
	return text + "."
}

func (r *report) quantity(total float64) string { return floatQuantity(total, r.Unit) }

// value writes a rate, or a value of a run.
func (r *report) value(v float64) string { return cell(r.words().Write(v)) }

func (r *report) words() *webui.Words {
	return webui.NewWords(r.SampleType, r.Unit, r.Basis != query.Rates)
}

// row is a row of the table.
func (r *report) row(c *reportedChange, isMarkdown bool) []string {
	part := signed("%+.2f", c.Part*100) + fmt.Sprintf(" ± %.2f %%", c.Margin/r.Base.Rate()*100)
	name := cell(c.Function)
	if isMarkdown {
		name = "`" + strings.NewReplacer("`", "'", "|", `\|`).Replace(name) + "`"
		if c.Fails {
			part = "**" + part + "**"
		}
	} else if c.Fails {
		part += " !"
	}
	return []string{
		cell(r.words().Change(c.Difference)), part, r.value(c.Base.Cumulative), r.value(c.New.Cumulative), r.value(c.Base.Flat), r.value(c.New.Flat),
		fmt.Sprintf("%.1g", c.P), name,
	}
}

// signed writes a number with its sign, as webui.Words writes changes.
func signed(format string, v float64) string {
	return strings.Replace(fmt.Sprintf(format, v), "-", "−", 1)
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
