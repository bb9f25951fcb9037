// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"cmp"
	"fmt"
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
	// Prefix is the start of the name of a pprof file, as TypePrefix returns it. Empty means
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
	sequence := strconv.FormatUint(n.Sequence, 10)
	sequence = "000000"[min(6, len(sequence)):] + sequence
	name := cmp.Or(n.Prefix, anyType) + "-" + n.Time.UTC().Format(nameTime) + "-" + sequence + n.Format.extension()
	if n.Partial && n.Format.SingleRecord() {
		name += bareSuffix
	}
	if n.Partial {
		name += partialSuffix
	}
	return name
}

// Closed is the name that the file gets when it is closed.
func (n Name) Closed() Name {
	n.Partial, n.Format.Bare = false, false
	return n
}

// ParseName parses a file's name without its directory. ok is false if this package
// writes no file of that name.
func ParseName(name string) (parsed Name, ok bool) {
	rest, partial := strings.CutSuffix(name, partialSuffix)
	rest, bare := strings.CutSuffix(rest, bareSuffix)
	parsed = Name{Partial: partial, Format: Format{Bare: bare}}
	for _, c := range []Compression{Gzip, Zstd} {
		if before, found := strings.CutSuffix(rest, c.extension()); found {
			rest, parsed.Format.Compression = before, c
		}
	}
	for _, c := range contents {
		if before, found := strings.CutSuffix(rest, "."+string(c)); found {
			rest, parsed.Format.Content = before, c
		}
	}
	beforeSequence, beforeTime := strings.LastIndexByte(rest, '-'), 0
	if beforeSequence > 0 {
		beforeTime = strings.LastIndexByte(rest[:beforeSequence], '-')
	}
	if beforeTime <= 0 {
		return Name{}, false
	}
	var timeErr, sequenceErr error
	parsed.Time, timeErr = time.Parse(nameTime, rest[beforeTime+1:beforeSequence])
	parsed.Sequence, sequenceErr = strconv.ParseUint(rest[beforeSequence+1:], 10, 63)
	if timeErr != nil || sequenceErr != nil {
		return Name{}, false
	}
	ours := true
	if prefix := rest[:beforeTime]; prefix != anyType {
		parsed.Prefix = prefix
		ours = parsed.Format.Content == Pprof && IsGroupName(prefix)
	}
	return parsed, ours && parsed.String() == name && parsed.Format.Validate() == nil
}

// TypePrefix returns the Name.Prefix of a profile type: the text that GroupName returns, so that
// different types have different names and none leads out of the directory. It is empty if there is no type.
func TypePrefix(profileType string) string {
	switch profileType {
	case "":
		return ""
	case anyType: // not to be taken for files without a type
		return fmt.Sprintf("%%%02X", anyType[0]) + anyType[1:]
	default:
		return GroupName(profileType)
	}
}
