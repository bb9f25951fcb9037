// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/conformance"
)

func (a *app) check() *cobra.Command {
	var sel selection
	var asJSON bool
	c := &cobra.Command{
		Use:   "check PATH...",
		Short: "Check OTLP profiles against the rules of the data format",
		Long: `Check each payload against the rules of the data format: ` + conformance.Format + `.

Each finding names the place in the message, the rule, what was found and what conforms.
Violations break a rule that the format states with MUST. Warnings break a
recommendation (SHOULD), or make trouble for readers. The exit code is 1 if there are
violations, or a file cannot be read.

With a selection, the payloads are checked that have something of it. pprof and folded
stacks are translated first.`,
		Example: `  otelprof check ./profiles
  otelprof check --json payload.otlp.pb | jq -r .path`,
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
			results := newFindings(a.stdout, asJSON)
			// The message itself is checked, so a payload is selected by a copy.
			err = source.Each(c.Context(), selected, func(record *archive.Record, _ pprofile.Profiles) error {
				report, err := checkRecord(record)
				if err != nil {
					return err
				}
				return results.add(record, report)
			})
			finish()
			if err != nil {
				return err
			}
			a.wrong = a.wrong || len(results.violations) > 0
			return results.summarize(len(source.Files))
		},
	}
	sel.addTo(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "write a line of JSON for each finding, and one with the summary")
	return c
}

// checkShare is how many times its decoded size the check of a record takes.
const checkShare = 3

func checkRecord(record *archive.Record) (*conformance.Report, error) {
	if err := record.Fits(checkShare); err != nil {
		return nil, err
	}
	if record.Encoding == archive.OTLPProto {
		return conformance.CheckBytes(record.Data), nil
	}
	pd, err := record.Profiles()
	if err != nil {
		return nil, err
	}
	return conformance.Check(pd), nil
}

// findings writes what the checks find, and counts it by rule.
type findings struct {
	to                   io.Writer
	asJSON               bool
	records              int
	violations, warnings map[conformance.Rule]int
}

func newFindings(to io.Writer, asJSON bool) *findings {
	return &findings{to: to, asJSON: asJSON, violations: map[conformance.Rule]int{}, warnings: map[conformance.Rule]int{}}
}

const (
	levelViolation = "violation"
	levelWarning   = "warning"
)

// finding is a line of JSON.
type finding struct {
	File   string           `json:"file"`
	Record int              `json:"record"`
	Offset int64            `json:"offset,omitempty"`
	Level  string           `json:"level"`
	Rule   conformance.Rule `json:"rule"`
	Path   string           `json:"path"`
	Found  string           `json:"found"`
	Wanted string           `json:"wanted"`
}

func (f *findings) add(record *archive.Record, report *conformance.Report) error {
	f.records++
	for rule, n := range report.Counts {
		if rule.Required() {
			f.violations[rule] += n
		} else {
			f.warnings[rule] += n
		}
	}
	for _, found := range report.Findings {
		line := finding{
			File: record.File, Record: record.Number, Offset: max(record.Offset, 0), Level: levelWarning,
			Rule: found.Rule, Path: found.Path, Found: found.Found, Wanted: found.Wanted,
		}
		if found.Rule.Required() {
			line.Level = levelViolation
		}
		if err := f.write(&line, found); err != nil {
			return err
		}
	}
	return nil
}

func (f *findings) write(line *finding, found conformance.Finding) error {
	if f.asJSON {
		return json.NewEncoder(f.to).Encode(line)
	}
	_, err := fmt.Fprintf(f.to, "%s: record %d: %s: %s\n", line.File, line.Record, line.Level, cell(found.String()))
	return err
}

// summary is the last line of JSON.
type summary struct {
	Format     string                   `json:"format"`
	Files      int                      `json:"files"`
	Records    int                      `json:"records"`
	Violations map[conformance.Rule]int `json:"violations"`
	Warnings   map[conformance.Rule]int `json:"warnings"`
}

func (f *findings) summarize(files int) error {
	if f.asJSON {
		return json.NewEncoder(f.to).Encode(map[string]summary{"summary": {
			Format: conformance.Format, Files: files, Records: f.records, Violations: f.violations, Warnings: f.warnings,
		}})
	}
	if len(f.violations)+len(f.warnings) > 0 {
		table := tabwriter.NewWriter(f.to, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "\nRULE\tLEVEL\tFINDINGS")
		for _, level := range []string{levelViolation, levelWarning} {
			counts := map[string]map[conformance.Rule]int{levelViolation: f.violations, levelWarning: f.warnings}[level]
			for _, rule := range slices.Sorted(maps.Keys(counts)) {
				_, _ = fmt.Fprintf(table, "%s\t%s\t%d\n", rule, level, counts[rule])
			}
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(f.to, "Checked %d records in %d files against %s: %d violations, %d warnings\n",
		f.records, files, conformance.Format, total(f.violations), total(f.warnings))
	return err
}

func total(counts map[conformance.Rule]int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}
