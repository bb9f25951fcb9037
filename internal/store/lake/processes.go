// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"fmt"
	"io"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
)

// Process is a row of the table of processes: the part that one process has of one Profile, which is an interval or a snapshot.
type Process struct {
	// Time is the start of the interval in microseconds, as not all engines read nanoseconds; null if it has none.
	Time         int64 `parquet:"time,optional,timestamp(microsecond),delta"`
	TimeUnixNano int64 `parquet:"time_unix_nano,optional,delta"`
	EndUnixNano  int64 `parquet:"end_unix_nano,optional,delta"` // of a snapshot, equal to the start
	// CoveredNano is how much of the time from start to end was profiled; 0 for snapshots.
	CoveredNano int64 `parquet:"covered_nano"`

	Profile

	Value int64 `parquet:"value"` // of all samples of the process, at most the largest int64
	// Process identifies the process, by 16 hexadecimal digits of a hash of its resource as it was received first; null for a row of several
	// processes, beyond the limit of a Profile.
	Process   string `parquet:"process,optional,dict"`
	Processes int64  `parquet:"processes"` // 1, or how many a row of several is of at most
	Intervals int64  `parquet:"intervals"` // how many received Profiles begin in the row

	Attributes map[string]string `parquet:"attributes" parquet-key:",dict" parquet-value:",dict"` // of the Profile
}

// processRows writes the table of processes.
type processRows struct{ *table[Process] }

// newProcesses returns a writer into a file that the caller closes. maxMemory, in bytes, bounds what the row groups take.
func newProcesses(w io.Writer, maxMemory int64, with *codec) *processRows {
	return &processRows{newTable[Process](w, ProcessesDir, maxMemory, with)}
}

// Close writes the end of the file.
func (s *processRows) Close() error { return s.close() }

// Add adds the processes of a valid payload without string references.
func (s *processRows) Add(pd pprofile.Profiles) error {
	var p payload
	return p.each(pd, func(profile pprofile.Profile) error {
		row := Process{Profile: p.common, Attributes: map[string]string{}}
		p.addAttributes(row.Attributes, profile.AttributeIndices().AsRaw())
		rows, _ := processes.Of(p.dict, p.resource, profile, processes.Sum(profile)) // of a malformed table, the resource is the process
		for i := range rows {
			row.setProcess(&rows[i])
			if _, err := s.add(&row); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *Process) setProcess(of *processes.Row) {
	start := nanoseconds(of.Start)
	p.Time, p.TimeUnixNano, p.EndUnixNano = start/1000, start, nanoseconds(of.End)
	p.CoveredNano, p.Value = nanoseconds(of.Covered), of.Value
	p.Processes, p.Intervals = int64(of.Processes), int64(of.Profiles)
	if p.Process = ""; of.Hash != processes.Rest {
		p.Process = fmt.Sprintf("%016x", of.Hash)
	}
}
