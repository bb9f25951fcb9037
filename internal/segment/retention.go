// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"cmp"
	"slices"
	"time"
)

// Retention says which finished files are kept, of all in a directory and its
// groups together. A limit of zero is none.
type Retention struct {
	// MaxFiles is how many there may be.
	MaxFiles int
	// MaxAge is how long ago a file may have been begun, as its name says.
	MaxAge time.Duration
	// MaxTotalSize is what they may take together, in bytes.
	MaxTotalSize int64
}

// kept is a finished file that a Retention decides on.
type kept struct {
	group string // path of its directory
	label string
	name  Name
	size  int64
}

func (r Retention) enabled() bool { return r.MaxFiles > 0 || r.MaxAge > 0 || r.MaxTotalSize > 0 }

// surplus gives the files to remove, the oldest first. It sorts files.
func (r Retention) surplus(files []kept, now time.Time) []kept {
	slices.SortFunc(files, func(a, b kept) int {
		return cmp.Or(a.name.Time.Compare(b.name.Time), cmp.Compare(a.name.Sequence, b.name.Sequence),
			cmp.Compare(a.group, b.group), cmp.Compare(a.label, b.label))
	})
	total := int64(0)
	for _, f := range files {
		total += f.size
	}
	for i, f := range files {
		left := len(files) - i
		switch {
		case r.MaxFiles > 0 && left > r.MaxFiles:
		case r.MaxTotalSize > 0 && total > r.MaxTotalSize:
		case r.MaxAge > 0 && now.Sub(f.name.Time) > r.MaxAge:
		default:
			return files[:i] // later ones are younger
		}
		total -= f.size
	}
	return files
}
