// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"errors"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/lake"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// parquetShare is the part of MaxMemory that Parquet files get while they are written. Reading gets a quarter, and the window another.
const parquetShare = 4

// parquetOf says where the Parquet files of an hour or day are.
func (p *pass) parquetOf(b *layout.Branch, stem string) *lake.Options {
	return &lake.Options{
		Root: p.options.Directory, OpenDir: p.options.OpenDir, Group: b.Group, Day: b.Time().Truncate(layout.Day.Span()), Stem: stem,
		MaxMemory: p.options.MaxMemory / parquetShare,
	}
}

// commitParquet gives the Parquet files their names.
func (m *maker) commitParquet() error {
	if m.tables == nil {
		return nil
	}
	written, err := m.tables.Commit()
	if err == nil {
		m.pass.options.Parquet.Written(lake.Dir(lake.SamplesDir, m.parquet.Group, m.parquet.Day), written)
	}
	return err
}

// leavesOut reports whether a partition is compacted without Parquet because of an error: of Parquet, and for too long.
func (p *pass) leavesOut(b *layout.Branch, level layout.Level, err error) bool {
	if _, ofParquet := errors.AsType[*lake.Error](err); !ofParquet {
		return false
	}
	if p.options.Now().Before(b.Time().Add(level.Span()).Add(p.options.After).Add(patience)) {
		return false
	}
	p.options.Parquet.LeftOut(b.Path, err)
	return true
}

// writeLate writes those inputs of a day as Parquet that were too late for their hours. Their segment is that of the day.
func (p *pass) writeLate(month, day *layout.Branch, inputs []layout.File) error {
	late := slices.DeleteFunc(slices.Clone(inputs), func(f layout.File) bool { return f.Level != layout.Written })
	if p.options.Parquet == nil || len(late) == 0 {
		return nil
	}
	return p.tryInputs(late, func(inputs []layout.File) error {
		m := &maker{pass: p, above: month, level: layout.Hour, inputs: inputs, parquet: p.parquetOf(day, lake.LateStem(p.id))}
		err := m.readInputs()
		if p.leavesOut(day, layout.Day, err) {
			return nil
		}
		return err
	})
}

// expireParquet applies the retention of Parquet files.
func (p *pass) expireParquet() error {
	now := p.options.Now()
	if p.options.Parquet == nil || now.Sub(p.expired).Abs() < expireInterval {
		return nil
	}
	removed, err := p.options.Parquet.Retention.Expire(p.root, now)
	for i := range removed {
		p.options.Parquet.Removed(removed[i].Path, removed[i].Size)
	}
	if err == nil {
		p.expired = now
	}
	return err
}
