// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/labels"
)

// Sync says when records are put on the disk. A file is always synced before it gets its
// final name.
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
	// maxTick is the longest interval between calls of Tick.
	maxTick = time.Second
	// concurrentTicks is how many groups Tick and Close work on at a time.
	concurrentTicks = 8
	// MaintainInterval is how often Maintain must be called.
	MaintainInterval = 10 * time.Second
)

// Options of a Writer. All of its functions but Failed may be nil. They are called while locks are held, and concurrently for several
// groups: they must be quick and must not call the Writer.
type Options struct {
	Directory string
	Format    Format
	Rotation  Rotation
	Sync      Sync
	// SyncInterval is for Sync SyncInterval only.
	SyncInterval time.Duration
	// Levels is how many subdirectories, one inside the other, a group has. Recovery and
	// retention look that deep.
	Levels int
	// MaxGroups is how many groups may have a directory; 0 is no limit. A group that has one
	// keeps it, also after a restart. The records of the others go to the directory Other.
	MaxGroups int
	// MaxOpen is how many files stay open, besides those in use. Each needs three descriptors. The others are opened
	// again when they are used.
	MaxOpen   int
	Retention Retention

	// RecordWritten gets a record that was written, its bytes on disk, and whether it is in the directory Other.
	RecordWritten func(record Record, stored int64, other bool)
	FileClosed    func(ClosedFile)
	FileRecovered func(RecoveredFile)
	// Keep reports whether a closed file, with its path below Directory, must stay longer than Retention.MaxAge, such as until it
	// was uploaded. A manifest of replaced files stays as long as its file must.
	Keep func(name string) bool
	// FileRemoved is called for each file that Retention removed.
	FileRemoved func(path string, size int64)
	// Failed gets the errors that no caller of Append gets. The failed operation is
	// retried. Most are, or wrap, an *fs.PathError.
	Failed func(error)

	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// OpenDir opens directories; nil is OpenDir of this package.
	OpenDir func(path string, group ...string) (Dir, error)
}

// TickInterval is how often Tick must be called.
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

// Rotation says when a file is closed. A limit of 0 is none.
type Rotation struct {
	// MaxSize is the size of a file on disk in bytes. Only a single record may exceed it.
	MaxSize int64
	// MaxAge is the time from a file's creation until it is closed.
	MaxAge time.Duration
	// MaxRecords is the number of records in a file.
	MaxRecords int
}

// Record is the unit that Append writes, completely or not at all.
type Record struct {
	Data []byte
	// Group holds the names of its subdirectories, one inside the other.
	Group   []string
	Samples int
	// Summaries describe the record in the index of its file and in ClosedFile. Without them, the file gets
	// no index.
	Summaries []Summary
	// Labels are those of the record for the index, nil if they are not known.
	Labels *labels.Set
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
	// IndexError is why the file has no index, or one without labels, although its records had summaries. It is not retried.
	IndexError error
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
	ByError    Reason = "error"
	ByShutdown Reason = "shutdown"
)
