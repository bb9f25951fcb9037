// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"slices"
)

// Record is the unit that Append writes, completely or not at all.
type Record struct {
	Data []byte
	// Group holds the names of its subdirectories, one inside the other.
	Group   []string
	Samples int
	// Summaries describe the record in the index of its file and in ClosedFile. Without them, the file gets
	// no index.
	Summaries []Summary
}

// ClosedFile describes a file that has its final name.
type ClosedFile struct {
	Path                       string
	Reason                     Reason
	Records, Profiles, Samples int
	// These hold the first 20 different names.
	Services, ProfileTypes, SampleTypes []string
	// Size is the number of bytes on disk, Raw that of the records before framing and
	// compression.
	Size, Raw int64
}

// add adds a record of size bytes on disk.
func (f *ClosedFile) add(record Record, size int64) {
	f.Size += size
	f.Raw += int64(len(record.Data))
	f.Records++
	f.Samples += record.Samples
	for i := range record.Summaries {
		s := &record.Summaries[i]
		f.Profiles += s.Profiles
		f.Services = addName(f.Services, s.Service)
		f.ProfileTypes = addName(f.ProfileTypes, s.Type)
		f.SampleTypes = addName(f.SampleTypes, s.SampleType)
	}
}

func addName(names []string, name string) []string {
	if name == "" || len(names) == 20 || slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// Reason says why a file was closed.
type Reason string

const (
	BySize    Reason = "size"
	ByAge     Reason = "age"
	ByRecords Reason = "records"
	// ByError: a file system error occurred while the file was written.
	ByError Reason = "error"
	// ByOpenFiles: too many groups had an open file.
	ByOpenFiles Reason = "open_files"
	ByShutdown  Reason = "shutdown"
)
