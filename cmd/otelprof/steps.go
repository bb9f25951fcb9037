// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// mostSteps is how many rows ls --step writes at most.
const mostSteps = 100_000

// parseStep parses the length of a step.
func parseStep(text string) (time.Duration, error) {
	step, err := time.ParseDuration(text)
	if err != nil || step < time.Second {
		return 0, errors.New("must be a duration of 1s or more, such as 1m")
	}
	return step, nil
}

// stepRow is a step of a series, and its JSON.
type stepRow struct {
	query.Kind

	// Time is when the step begins, and Seconds its length.
	Time    time.Time `json:"time"`
	Seconds float64   `json:"step_seconds"`
	// Rate is the sum per second of all processes, and Level of snapshots the mean of their sum.
	Rate  *float64 `json:"rate,omitempty"`
	Level *float64 `json:"level,omitempty"`
	// Processes is how many live on average.
	Processes float64 `json:"processes"`

	value float64
}

// listSteps writes the values of each series by steps of a length.
func (a *app) listSteps(ctx context.Context, source *query.Source, sel *query.Selection, length time.Duration, asJSON bool) error {
	all, err := source.Series(ctx, sel, nil)
	if err != nil {
		return err
	}
	total := 0
	table := [][]string{{"TIME", "SERVICE", "TYPE", "SAMPLE TYPE", "VALUE", "PROCESSES", ""}}
	encoder := json.NewEncoder(a.stdout)
	for _, of := range all {
		rows, err := stepsOf(of, sel, uint64(length), mostSteps-total)
		if err != nil {
			return fmt.Errorf("--step is %s: %w", length, err)
		}
		total += len(rows)
		most := 0.0
		for i := range rows {
			most = max(most, rows[i].value)
		}
		for i := range rows {
			row := &rows[i]
			if asJSON {
				if err := encoder.Encode(row); err != nil {
					return err
				}
				continue
			}
			w := webui.NewWords(row.SampleType, row.Unit, row.Snapshot)
			table = append(table, []string{
				row.Time.Format(time.RFC3339), shortCell(row.Service), shortCell(row.Type), cell(row.SampleType), cell(w.Write(row.value)),
				strconv.FormatFloat(row.Processes, 'g', 3, 64), bar(row.value, most),
			})
		}
	}
	switch {
	case total == 0:
		return query.ErrEmpty
	case asJSON:
		return nil
	default:
		return writeTable(a.stdout, table)
	}
}

// stepsOf returns the steps of a series that have data. Steps begin at multiples of their length.
func stepsOf(of *query.Series, sel *query.Selection, length uint64, most int) (rows []stepRow, err error) {
	from, to := of.Bounds(sel)
	if of.Last == 0 { // all is outside of the range
		return nil, nil
	}
	from, to = max(from, of.First), min(to, of.Last+1)
	from -= from % length
	if n := (to - from + length - 1) / length; n > uint64(most) {
		return nil, fmt.Errorf("makes more than %d rows: must be longer, or select less, by service, type or time", mostSteps)
	}
	for i, step := range of.Steps(from, length, int((to-from+length-1)/length)) {
		if step.Data == 0 {
			continue
		}
		value := step.Rate
		row := stepRow{Kind: of.Kind, Time: query.TimeOf(from + uint64(i)*length), Seconds: float64(length) / 1e9, Processes: step.Processes, value: value}
		if of.Snapshots {
			row.Level = &value
		} else {
			row.Rate = &value
		}
		rows = append(rows, row)
	}
	return rows, nil
}
