// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	namePrefix    = "profiles-"
	nameTime      = "20060102T150405.000Z"
	partialEnding = ".partial"
	bareEnding    = ".bare"
)

// Name is the name of a file of this package, taken apart.
type Name struct {
	// Time is when the file was begun, in UTC, to the millisecond.
	Time time.Time
	// Sequence tells files of the same millisecond apart.
	Sequence uint64
	// Format is what the name says of it; the framing only in a partial name.
	Format Format
	// Partial is set while the file is being written.
	Partial bool
}

// String puts the name together.
func (n Name) String() string {
	name := fmt.Sprintf("%s%s-%06d%s", namePrefix, n.Time.UTC().Format(nameTime), n.Sequence, n.Format.extension())
	if n.Partial {
		if n.Format.Framing == Bare {
			name += bareEnding
		}
		name += partialEnding
	}
	return name
}

var nameForm = regexp.MustCompile(
	`^profiles-(\d{8}T\d{6}\.\d{3}Z)-(\d{6,19})\.(otlp\.pb|otlp\.jsonl|pprof\.pb)(\.gz|\.zst)?((?:\.bare)?\.partial)?$`)

// ParseName takes a file's name (without directory) apart. ok is false if it is
// not exactly of the form that this package gives its files.
func ParseName(name string) (parsed Name, ok bool) {
	parts := nameForm.FindStringSubmatch(name)
	if parts == nil {
		return Name{}, false
	}
	begun, err := time.Parse(nameTime, parts[1])
	if err != nil {
		return Name{}, false
	}
	sequence, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return Name{}, false
	}
	parsed = Name{Time: begun, Sequence: sequence, Format: Format{Content: Content(parts[3])}, Partial: parts[5] != ""}
	for _, c := range []Compression{Gzip, Zstd} {
		if parts[4] == c.ending() {
			parsed.Format.Compression = c
		}
	}
	if parsed.Partial {
		parsed.Format.Framing = parsed.Format.framing()
		if strings.HasPrefix(parts[5], bareEnding) {
			parsed.Format.Framing = Bare
		}
	}
	return parsed, parsed.String() == name && parsed.Format.validate() == nil
}

// names gives the names of one Writer's files.
type names struct {
	format Format
	latest time.Time
	used   uint64
}

// next gives a name that this Writer has not given before, later than all before
// it in the order of its files.
func (n *names) next(now time.Time) Name {
	if now = now.UTC().Truncate(time.Millisecond); now.After(n.latest) {
		n.latest = now
	}
	n.used++
	return Name{Time: n.latest, Sequence: n.used, Format: n.format}
}
