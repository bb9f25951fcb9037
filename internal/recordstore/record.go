// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordstore

import (
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/fileindex"
)

// Record is what Append writes at once, completely or not at all.
type Record struct {
	Data []byte
	// Group holds the names of its subdirectories, one inside the other.
	Group []string
	// Type starts the name of a pprof file. It may be empty.
	Type    string
	Summary Summary
	// Summaries describe the record in the index of its file. Without them, the file gets no index. Bare
	// files, which have one record, need none.
	Summaries []fileindex.Summary
}

// maxSummaryNames bounds the lists of a Summary.
const maxSummaryNames = 20

// Summary describes records for the logs.
type Summary struct {
	Profiles, Samples int
	// These hold the first 20 different names.
	Services, ProfileTypes, SampleTypes []string
}

// Add adds another record's summary.
func (s *Summary) Add(other Summary) {
	s.Profiles += other.Profiles
	s.Samples += other.Samples
	s.Services = addNames(s.Services, other.Services...)
	s.ProfileTypes = addNames(s.ProfileTypes, other.ProfileTypes...)
	s.SampleTypes = addNames(s.SampleTypes, other.SampleTypes...)
}

// AddNames adds those names that are not empty.
func (s *Summary) AddNames(service, profileType, sampleType string) {
	s.Services = addNames(s.Services, service)
	s.ProfileTypes = addNames(s.ProfileTypes, profileType)
	s.SampleTypes = addNames(s.SampleTypes, sampleType)
}

func addNames(names []string, more ...string) []string {
	for _, name := range more {
		if name != "" && len(names) < maxSummaryNames && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// ClosedFile describes a file that has its final name.
type ClosedFile struct {
	Path    string
	Reason  Reason
	Records int
	Summary Summary
	// Size is the number of bytes on disk, Raw that of the records before framing and
	// compression.
	Size, Raw int64
}

// Reason says why a file was closed.
type Reason string

const (
	BySize    Reason = "size"
	ByAge     Reason = "age"
	ByRecords Reason = "records"
	// BySingleRecord: the file is bare.
	BySingleRecord Reason = "one_record_per_file"
	// ByError: a file system error occurred while the file was written.
	ByError Reason = "error"
	// ByOpenFiles: too many groups had an open file.
	ByOpenFiles Reason = "open_files"
	ByShutdown  Reason = "shutdown"
)
