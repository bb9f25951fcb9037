// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// Sync says when records are put on the disk. A file is always synced before it is closed.
type Sync int

const (
	// SyncNone leaves it to the operating system.
	SyncNone Sync = iota
	// SyncInterval syncs within Options.SyncInterval after a record was written.
	SyncInterval
	// SyncRecord syncs before Append returns.
	SyncRecord
)

const (
	// maxTick is the longest interval between calls of Tick and CloseDue.
	maxTick = time.Second
	// concurrentTicks is how many groups Tick works on at a time.
	concurrentTicks = 8
	// concurrentCloses is that of CloseDue: the records of one file are joined while another one is synced. Each has descriptors beside those of
	// the next file of its group.
	concurrentCloses = 2
	// MaintainInterval is how often Maintain must be called.
	MaintainInterval = 10 * time.Second
	// maxAhead is how far ahead of the clock a record's hour may be.
	maxAhead = 24 * time.Hour
)

// Options of a Writer. All functions but Failed may be nil. They may be called concurrently, while locks are held: they must be quick
// and must not call the Writer.
type Options struct {
	Directory string
	Format    segment.Format
	Rotation  Rotation
	Sync      Sync
	// SyncInterval is for Sync SyncInterval only.
	SyncInterval time.Duration
	// MaxGroups is how many groups may have a directory; 0 is no limit. A group that has one keeps it, also after a restart. The
	// records of the others go to the group whose values are all Other.
	MaxGroups int
	// MaxOpen is how many files may be open. Each needs three descriptors. More files may be being written.
	MaxOpen   int
	Retention Retention

	// RecordWritten gets a record that was written, its bytes on disk, and whether it is in the group Other.
	RecordWritten func(record Record, stored int64, other bool)
	// RecordAhead gets a record that was written and ends more than 24 hours ahead of the clock, so that queries of its time do not
	// find it.
	RecordAhead   func(record Record)
	FileClosed    func(ClosedFile)
	FileRecovered func(RecoveredFile)
	// Keep reports whether a closed file, with its path below Directory, must stay longer than Retention.MaxAge, such as until it
	// was uploaded.
	Keep func(path string) bool
	// FileRemoved is called for each file that Retention removed, with its path below Directory.
	FileRemoved func(path string, size int64)
	// Failed gets the errors that no caller of Append gets. The failed operation is retried. Most are, or wrap, an *fs.PathError.
	Failed func(error)

	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// OpenDir opens directories; nil is layout.OpenDir.
	OpenDir func(path string, inside ...string) (layout.Dir, error)
}

// TickInterval is how often Tick and CloseDue must be called.
func (o *Options) TickInterval() time.Duration {
	interval := maxTick
	if o.Rotation.MaxAge > 0 {
		interval = min(interval, o.Rotation.MaxAge)
	}
	if o.Sync == SyncInterval {
		interval = min(interval, o.SyncInterval)
	}
	return max(interval, time.Millisecond)
}

// Rotation says when a file is closed, at the latest when its hour ends. A limit of 0 is none.
type Rotation struct {
	// MaxSize is the size in bytes of a file on disk without its index. Only a single record may exceed it.
	MaxSize int64
	// MaxAge is the time from a file's creation until it is closed.
	MaxAge time.Duration
	// MaxRecords is the number of records in a file.
	MaxRecords int
}

// Record is the unit that Append writes, completely or not at all.
type Record struct {
	Data []byte
	// Group are the directories of its group, one inside the other, each from layout.GroupDir.
	Group []string
	// Entry describes the record. Without one, it counts as one of any time, and readers must read it.
	Entry *contents.Entry
}

// ClosedFile describes a file that was closed.
type ClosedFile struct {
	Path   string
	Reason Reason
	// Records is the number of records, which is less than that of calls of Append if they were joined.
	Records, Profiles, Samples int
	// These hold the first 20 different names.
	Services, ProfileTypes, SampleTypes []string
	// Size is the number of bytes of the records on disk, Raw that of the records before framing and compression.
	Size, Raw int64
	// IndexError is why the file has no index, or an incomplete one. It is not retried: readers read the records.
	IndexError error
	// JoinError is why the records of the file were not joined. It is not retried: the file has them as they were written.
	JoinError error
}

// add adds a record of size bytes on disk.
func (f *ClosedFile) add(record *Record, size int64) {
	f.Size += size
	f.Raw += int64(len(record.Data))
	f.Records++
	if record.Entry == nil {
		return
	}
	f.Samples += record.Entry.Samples
	for i := range record.Entry.Summaries {
		s := &record.Entry.Summaries[i]
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
	// ByHour: the hour of the file's partition ended.
	ByHour Reason = "hour"
	// ByError: a file system error occurred while the file was written.
	ByError    Reason = "error"
	ByShutdown Reason = "shutdown"
)

// Retention says which closed files are kept, of all groups together. A limit of 0 is none.
type Retention struct {
	MaxFiles int
	// MaxAge is the time since the latest end of the file's Profiles.
	MaxAge time.Duration
	// MaxTotalSize is the sum of the sizes in bytes.
	MaxTotalSize int64
}
