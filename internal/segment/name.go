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
	nameTime      = "20060102T150405.000Z"
	partialSuffix = ".partial"
	bareSuffix    = ".bare"
)

// Name is a parsed file name.
type Name struct {
	// Time is when the file was created, in UTC, to the millisecond.
	Time time.Time
	// Sequence distinguishes files of the same millisecond.
	Sequence uint64
	Format   Format
	// Partial is set while the file is being written.
	Partial bool
}

func (n Name) String() string {
	name := fmt.Sprintf("profiles-%s-%06d%s", n.Time.UTC().Format(nameTime), n.Sequence, n.Format.extension())
	if n.Partial && n.Format.bare() {
		name += bareSuffix
	}
	if n.Partial {
		name += partialSuffix
	}
	return name
}

// closed is the name that the file gets when it is closed.
func (n Name) closed() Name {
	n.Partial, n.Format.Bare = false, false
	return n
}

var namePattern = regexp.MustCompile(
	`^profiles-(\d{8}T\d{6}\.\d{3}Z)-(\d{6,19})\.(otlp\.pb|otlp\.jsonl|pprof\.pb)(\.gz|\.zst)?((?:\.bare)?\.partial)?$`)

// ParseName parses a file's name without its directory. ok is false if this package
// writes no file of that name.
func ParseName(name string) (parsed Name, ok bool) {
	parts := namePattern.FindStringSubmatch(name)
	if parts == nil {
		return Name{}, false
	}
	created, err := time.Parse(nameTime, parts[1])
	if err != nil {
		return Name{}, false
	}
	sequence, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return Name{}, false
	}
	parsed = Name{Time: created, Sequence: sequence, Format: Format{Content: Content(parts[3])}, Partial: parts[5] != ""}
	for _, c := range []Compression{Gzip, Zstd} {
		if parts[4] == c.extension() {
			parsed.Format.Compression = c
		}
	}
	parsed.Format.Bare = strings.HasPrefix(parts[5], bareSuffix)
	return parsed, parsed.String() == name && parsed.Format.validate() == nil
}

// names generates the names of files in one directory.
type names struct {
	format Format
	latest time.Time
	used   uint64
}

// next returns a name that sorts after all names before it, even if the clock was set
// back.
func (n *names) next(now time.Time) Name {
	if now = now.UTC().Truncate(time.Millisecond); now.After(n.latest) {
		n.latest = now
	}
	n.used++
	return Name{Time: n.latest, Sequence: n.used, Format: n.format}
}
