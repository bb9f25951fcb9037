// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

func (a *app) check() *cobra.Command {
	c := &cobra.Command{
		Use:   "check PATH...",
		Short: "Check OTLP profiles against the rules of the data format",
		Long: `Check each payload against the rules of the data format:
` + conformance.Format + `.

Each finding names the place in the message, the rule, what was found and what
conforms. Violations break a rule that the format states with MUST. Warnings
break a recommendation (SHOULD), or cause errors in readers. The exit code is 1
if there are violations, or a file cannot be read.

With a selection, the payloads are checked that have something of it. Other
formats have no such rules: the check is of their translation to OTLP.`,
		Example: `  otelprof check ./profiles
  otelprof check --json payload.otlp.pb | jq -r .path`,
		Args: paths,
	}
	sel := a.addSelection(c.Flags())
	asJSON := c.Flags().Bool("json", false, "write a line of JSON for each finding, and one with the summary")
	c.RunE = func(c *cobra.Command, args []string) error {
		source, err := a.source(args)
		if err != nil {
			return err
		}
		results := &findings{to: a.stdout, asJSON: *asJSON, summary: summary{
			Format:     conformance.Format,
			Violations: map[conformance.Rule]int{}, Warnings: map[conformance.Rule]int{},
		}}
		// The message itself is checked, so a payload is selected by a copy.
		err = source.Each(c.Context(), sel, func(record *archive.Record, _ pprofile.Profiles) error {
			return results.check(record)
		})
		if err != nil {
			return err
		}
		if err := results.summarize(); err != nil {
			return err
		}
		if results.Records == 0 {
			return query.ErrEmpty
		}
		a.wrong = a.wrong || len(results.Violations) > 0
		return nil
	}
	return c
}

// findings writes the findings of the checks, and counts them by rule.
type findings struct {
	to     io.Writer
	asJSON bool
	file   string // of the last record
	summary
}

// summary is the last line of JSON.
type summary struct {
	Format  string `json:"format"`
	Files   int    `json:"files"`
	Records int    `json:"records"`
	// Translated is how many of the records are not OTLP.
	Translated int                      `json:"translated"`
	Violations map[conformance.Rule]int `json:"violations"`
	Warnings   map[conformance.Rule]int `json:"warnings"`
}

// finding is a line of JSON.
type finding struct {
	File   string `json:"file"`
	Record int    `json:"record"`
	Offset int64  `json:"offset,omitempty"`
	Level  string `json:"level"`
	conformance.Finding
}

// checkShare is how many times its decoded size the check of a record takes.
const checkShare = 3

func (f *findings) check(record *archive.Record) error {
	if err := record.Fits(checkShare); err != nil {
		return err
	}
	var report *conformance.Report
	if record.Encoding == archive.OTLPProto {
		report = conformance.CheckBytes(record.Data)
	} else {
		pd, err := record.Profiles()
		if err != nil {
			return err
		}
		report = conformance.Check(pd)
	}
	if f.Records++; f.file != record.File {
		f.Files++
		f.file = record.File
	}
	if record.Encoding != archive.OTLPProto && record.Encoding != archive.OTLPJSON {
		f.Translated++
	}
	for rule, n := range report.Counts {
		if rule.Required() {
			f.Violations[rule] += n
		} else {
			f.Warnings[rule] += n
		}
	}
	for _, found := range report.Findings {
		level := "warning"
		if found.Rule.Required() {
			level = "violation"
		}
		var err error
		if f.asJSON {
			err = json.NewEncoder(f.to).Encode(finding{record.File, record.Number, max(record.Offset, 0), level, found})
		} else {
			_, err = fmt.Fprintf(f.to, "%s: record %d: %s: %s\n", cell(record.File), record.Number, level, cell(found.String()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *findings) summarize() error {
	if f.asJSON {
		return json.NewEncoder(f.to).Encode(map[string]summary{"summary": f.summary})
	}
	table := [][]string{{}, {"RULE", "LEVEL", "FINDINGS"}}
	add := func(level string, counts map[conformance.Rule]int) (total int) {
		for _, rule := range slices.Sorted(maps.Keys(counts)) {
			table = append(table, []string{string(rule), level, strconv.Itoa(counts[rule])})
			total += counts[rule]
		}
		return total
	}
	violations, warnings := add("violation", f.Violations), add("warning", f.Warnings)
	if violations+warnings > 0 {
		if err := writeTable(f.to, table); err != nil {
			return err
		}
	}
	translated := ""
	if f.Translated > 0 {
		translated = fmt.Sprintf(", %d of them as translated to OTLP,", f.Translated)
	}
	_, err := fmt.Fprintf(f.to, "Checked %s in %s%s against %s: %s, %s\n", plural(f.Records, "record"),
		plural(f.Files, "file"), translated, f.Format, plural(violations, "violation"), plural(warnings, "warning"))
	return err
}

// plural returns a number with a noun: "1 file", "2 files".
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
