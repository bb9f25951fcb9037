// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"fmt"
	"time"
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
	// concurrentTicks is how many groups Tick works on at a time.
	concurrentTicks = 8
	// MaintainInterval is how often Maintain must be called.
	MaintainInterval = 10 * time.Second
)

// Options of a Writer. Its functions may be nil. They are called while locks are held: they must be
// quick and must not call the Writer.
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
	// MaxOpen is how many groups may have an open file. Each needs three descriptors.
	MaxOpen   int
	Retention Retention

	// RecordWritten gets a record that was written, its bytes on disk, and whether it is in the directory Other.
	RecordWritten func(record Record, stored int64, other bool)
	FileClosed    func(ClosedFile)
	FileRecovered func(RecoveredFile)
	// FileRemoved is called for each file that Retention removed.
	FileRemoved func(path string, size int64)
	// IndexFailed gets the error if the index of a closed file cannot be written, which is not
	// retried.
	IndexFailed func(error)
	// Failed gets the errors that no caller of Append gets. The failed operation is
	// retried. Most are, or wrap, an *fs.PathError.
	Failed func(error)

	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// OpenDir opens directories; nil is OpenDir of this package.
	OpenDir func(path string, group ...string) (Dir, error)
}

func (o *Options) validate() error {
	if err := o.Format.Validate(); err != nil {
		return err
	}
	if o.Sync == SyncInterval && o.SyncInterval <= 0 {
		return fmt.Errorf("sync interval is %v: must be more than 0", o.SyncInterval)
	}
	if o.Levels < 0 || o.MaxGroups < 0 || o.MaxOpen < 1 {
		return fmt.Errorf("levels is %d, groups is %d, open groups is %d: must be 0, 0 and 1 or more", o.Levels, o.MaxGroups, o.MaxOpen)
	}
	return nil
}

func (o *Options) setDefaults() {
	if o.RecordWritten == nil {
		o.RecordWritten = func(Record, int64, bool) {}
	}
	if o.FileClosed == nil {
		o.FileClosed = func(ClosedFile) {}
	}
	if o.FileRecovered == nil {
		o.FileRecovered = func(RecoveredFile) {}
	}
	if o.FileRemoved == nil {
		o.FileRemoved = func(string, int64) {}
	}
	if o.IndexFailed == nil {
		o.IndexFailed = func(error) {}
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OpenDir == nil {
		o.OpenDir = OpenDir
	}
}

func (o *Options) tickInterval() time.Duration {
	interval := maxTick
	if o.Rotation.MaxAge > 0 {
		interval = min(interval, o.Rotation.MaxAge)
	}
	if o.Sync == SyncInterval {
		interval = min(interval, o.SyncInterval)
	}
	return max(interval, time.Millisecond)
}
