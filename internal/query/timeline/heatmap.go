// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// Grid divides a range into columns of time, and each column into rows by the offset within it. Columns begin at multiples of
// their length since the epoch, so that a cell is the same in each range that has it.
type Grid struct {
	From    uint64 // of the first column, in nanoseconds since the epoch
	Column  uint64 // length of a column in nanoseconds, a multiple of Rows
	Columns int
	Rows    int
}

const (
	gridRows    = 50
	maxColumns  = 1800
	fewColumns  = 20
	second      = uint64(1e9)
	leastColumn = second / 1000
)

// NewGrid returns the grid of the range [from, to), whose columns are a second, or a power of ten of it if there were many
// columns or few.
func NewGrid(from, to uint64) Grid {
	g := Grid{Column: second, Rows: gridRows}
	for (to-from)/g.Column >= maxColumns-1 {
		g.Column *= 10
	}
	for (to-from)/g.Column < fewColumns && g.Column > leastColumn {
		g.Column /= 10
	}
	g.From = from - from%g.Column
	g.Columns = int((to - g.From + g.Column - 1) / g.Column)
	return g
}

// cell returns the column and the row of a time. ok is false if it is not in the grid.
func (g *Grid) cell(t uint64) (column, row int, ok bool) {
	if t < g.From {
		return 0, 0, false
	}
	since := t - g.From
	if since/g.Column >= uint64(g.Columns) {
		return 0, 0, false
	}
	return int(since / g.Column), int(since % g.Column / (g.Column / uint64(g.Rows))), true
}

// Heatmap has the samples of each cell of a grid. A sample is where its timestamp is.
type Heatmap struct {
	Grid

	// Values and Counts are the sum and the number of samples of each cell, the cells of a column together from its first row on. A
	// timestamp is a sample. Values are saturated.
	Values []int64
	Counts []int64
	// Untimed is the number of samples without timestamps, which are in no cell.
	Untimed int
}

// NewHeatmap returns a heatmap without samples.
func NewHeatmap(g Grid) *Heatmap {
	return &Heatmap{Grid: g, Values: make([]int64, g.Columns*g.Rows), Counts: make([]int64, g.Columns*g.Rows)}
}

// Add adds the samples of a payload.
func (h *Heatmap) Add(ctx context.Context, pd pprofile.Profiles) error {
	untimed, err := each(ctx, pd, func(s *sample) error {
		for k := range s.timestamps.Len() {
			if column, row, ok := h.cell(s.timestamps.At(k)); ok {
				i := column*h.Rows + row
				h.Values[i] = sampletypes.AddSaturated(h.Values[i], s.value(k))
				h.Counts[i]++
			}
		}
		return nil
	})
	h.Untimed += untimed
	return err
}

// Cells is a rectangle of cells: columns and rows from the first to the last one.
type Cells struct {
	FirstColumn, LastColumn int
	FirstRow, LastRow       int
}

// ParseCells reads cells of the grid as String writes them.
func (g *Grid) ParseCells(text string) (c Cells, err error) {
	columns, rows, ok := strings.Cut(text, ",")
	if ok {
		c.FirstColumn, c.LastColumn, ok = parseSpan(columns, g.Columns)
	}
	if ok {
		c.FirstRow, c.LastRow, ok = parseSpan(rows, g.Rows)
	}
	if !ok {
		return c, fmt.Errorf("must be columns and rows such as 3-9,0-49: of %d columns and %d rows, from 0", g.Columns, g.Rows)
	}
	return c, nil
}

// parseSpan reads two numbers below n, the second of which is not less.
func parseSpan(text string, n int) (first, last int, ok bool) {
	a, b, ok := strings.Cut(text, "-")
	first, errFirst := strconv.Atoi(a)
	last, errLast := strconv.Atoi(b)
	return first, last, ok && errFirst == nil && errLast == nil && first >= 0 && first <= last && last < n
}

func (c Cells) String() string {
	return fmt.Sprintf("%d-%d,%d-%d", c.FirstColumn, c.LastColumn, c.FirstRow, c.LastRow)
}

// has reports whether a cell is one of them.
func (c *Cells) has(column, row int) bool {
	return c.FirstColumn <= column && column <= c.LastColumn && c.FirstRow <= row && row <= c.LastRow
}
