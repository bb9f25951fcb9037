// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package fromotlp

import (
	"bytes"
	"regexp"
	"strings"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// Attribute keys of the semantic conventions.
const (
	ProfileComment    = string(semconv.PprofProfileCommentKey)
	ProfileDropFrames = string(semconv.PprofProfileDropFramesKey)
	ProfileKeepFrames = string(semconv.PprofProfileKeepFramesKey)
	ProfileDocURL     = string(semconv.PprofProfileDocURLKey)
	LocationFrameType = string(semconv.ProfileFrameTypeKey)
	LocationIsFolded  = string(semconv.PprofLocationIsFoldedKey)
	BuildIDGNU        = string(semconv.ProcessExecutableBuildIDGNUKey)
	BuildIDGo         = string(semconv.ProcessExecutableBuildIDGoKey)
	ExecutableName    = string(semconv.ProcessExecutableNameKey)
)

// BuildIDs are the keys of build ids of a mapping. The first one that a mapping has counts.
var BuildIDs = [...]string{BuildIDGNU, BuildIDGo, string(semconv.ProcessExecutableBuildIDHtlhashKey)}

// If the values of a label have different units, each becomes a list with these keys.
const (
	ElementValue = "value"
	ElementUnit  = "unit"
)

// goBuildID is a Go build ID: two or four parts of 20 characters of base64url, separated by slashes.
var goBuildID = regexp.MustCompile(`^[\w-]{20}/[\w-]{20}(/[\w-]{20}/[\w-]{20})?$`)

// IsGoBuildID reports whether id has the form of a Go build ID.
func IsGoBuildID(id []byte) bool { return len(id) > 40 && len(id) < 84 && goBuildID.Match(id) }

// BaseName returns the last element of a Unix or Windows path, without the mark that
// Linux puts on a deleted file.
func BaseName(file string) string {
	file = strings.TrimSpace(strings.ReplaceAll(file, "(deleted)", ""))
	return file[strings.LastIndexAny(file, `/\`)+1:]
}

// maxFile is how many bytes at the start and at the end of a file are looked at: a payload may
// have many mappings with one long name.
const maxFile = 256

// IsProgram reports whether file may be that of the main program: it is neither a shared library
// nor a pseudo file.
func IsProgram(file []byte) bool {
	start := bytes.TrimSpace(file[:min(len(file), maxFile)])
	end := bytes.TrimSpace(bytes.ReplaceAll(lastBytes(file), []byte("(deleted)"), nil))
	return len(start) > 0 && start[0] != '[' && len(end) > 0 && !IsLibrary(end)
}

// library is the end of the name of a shared library.
var library = regexp.MustCompile(`\.so$|\.so[._][0-9]`)

// IsLibrary reports whether file ends in .so, or has .so. or .so_ followed by a digit, as a shared
// library does.
func IsLibrary(file []byte) bool { return library.Match(lastBytes(file)) }

func lastBytes(file []byte) []byte { return file[max(0, len(file)-maxFile):] }
