// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	anyType       = "profiles"
	nameTime      = "20060102T150405.000Z"
	partialSuffix = ".partial"
	bareSuffix    = ".bare"
)

// Name is a parsed file name.
type Name struct {
	// Prefix is the start of the name of a pprof file, as prefixOf returns it. Empty means
	// anyType, as in all other files.
	Prefix string
	// Time is when the file was created, in UTC, to the millisecond.
	Time time.Time
	// Sequence distinguishes files of the same millisecond.
	Sequence uint64
	Format   Format
	// Partial is set while the file is being written.
	Partial bool
}

func (n Name) String() string {
	name := fmt.Sprintf("%s-%s-%06d%s", cmp.Or(n.Prefix, anyType), n.Time.UTC().Format(nameTime), n.Sequence, n.Format.extension())
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
	`^([A-Za-z0-9_%-][A-Za-z0-9._%~-]{0,127})-(\d{8}T\d{6}\.\d{3}Z)-(\d{6,19})\.(otlp\.pb|otlp\.jsonl|pprof\.pb)(\.gz|\.zst)?((?:\.bare)?\.partial)?$`)

// ParseName parses a file's name without its directory. ok is false if this package
// writes no file of that name.
func ParseName(name string) (parsed Name, ok bool) {
	parts := namePattern.FindStringSubmatch(name)
	if parts == nil {
		return Name{}, false
	}
	created, err := time.Parse(nameTime, parts[2])
	if err != nil {
		return Name{}, false
	}
	sequence, err := strconv.ParseUint(parts[3], 10, 64)
	if err != nil {
		return Name{}, false
	}
	parsed = Name{Time: created, Sequence: sequence, Format: Format{Content: Content(parts[4])}, Partial: parts[6] != ""}
	if parts[1] != anyType {
		parsed.Prefix = parts[1]
	}
	for _, c := range []Compression{Gzip, Zstd} {
		if parts[5] == c.extension() {
			parsed.Format.Compression = c
		}
	}
	parsed.Format.Bare = strings.HasPrefix(parts[6], bareSuffix)
	ours := parsed.Prefix == "" || parsed.Format.Content == Pprof
	return parsed, ours && parsed.String() == name && parsed.Format.validate() == nil
}

// prefixOf returns the start of the names of pprof files of a profile type: the text that
// GroupName returns, so that different types have different names and none leads out of the
// directory. It is empty if there is no type.
func prefixOf(profileType string) string {
	switch profileType {
	case "":
		return ""
	case anyType: // not to be taken for files without a type
		return fmt.Sprintf("%%%02X", anyType[0]) + anyType[1:]
	default:
		return GroupName(profileType)
	}
}

// names generates the names of files in one directory.
type names struct {
	format Format
	prefix string
	latest time.Time
	used   uint64
}

// next returns a name that sorts after all names with its prefix before it, even if the
// clock was set back.
func (n *names) next(now time.Time) Name {
	if now = now.UTC().Truncate(time.Millisecond); now.After(n.latest) {
		n.latest = now
	}
	n.used++
	return Name{Prefix: n.prefix, Time: n.latest, Sequence: n.used, Format: n.format}
}
