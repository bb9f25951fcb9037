// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package semconv holds the conventions that both directions of the translation
// follow: the keys of attributes, and the labels that stand for a link or a timestamp.
package semconv

import "strings"

// Attribute keys of the semantic conventions (v1.41.0, namespaces pprof, process and profile).
const (
	ProfileComment    = "pprof.profile.comment"
	ProfileDropFrames = "pprof.profile.drop_frames"
	ProfileKeepFrames = "pprof.profile.keep_frames"
	ProfileDocURL     = "pprof.profile.doc_url"
	LocationFrameType = "profile.frame.type"
	LocationIsFolded  = "pprof.location.is_folded"
	BuildIDGNU        = "process.executable.build_id.gnu"
	BuildIDGo         = "process.executable.build_id.go"
	BuildIDHTLHash    = "process.executable.build_id.htlhash"
	ExecutableName    = "process.executable.name"
)

// MappingFlags are the keys for has_functions, has_filenames, has_line_numbers and
// has_inline_frames of a mapping, in the order of pprof's fields.
var MappingFlags = [4]string{
	"pprof.mapping.has_functions", "pprof.mapping.has_filenames",
	"pprof.mapping.has_line_numbers", "pprof.mapping.has_inline_frames",
}

// If the values of a label have different units, each becomes a list with these keys.
const (
	ElementValue = "value"
	ElementUnit  = "unit"
)

// IsGoBuildID reports whether id has the form of a Go build ID: two or four parts of
// 20 characters of base64url, separated by slashes.
func IsGoBuildID(id []byte) bool {
	const part = 20
	if len(id) != 2*part+1 && len(id) != 4*part+3 {
		return false
	}
	for i, b := range id {
		if i%(part+1) == part {
			if b != '/' {
				return false
			}
			continue
		}
		switch {
		case b >= '0' && b <= '9', b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b == '-', b == '_':
		default:
			return false
		}
	}
	return true
}

// BaseName returns the last element of a Unix or Windows path, without the mark that
// Linux puts on a deleted file.
func BaseName(file string) string {
	file = strings.TrimSpace(strings.ReplaceAll(file, "(deleted)", ""))
	return file[strings.LastIndexAny(file, `/\`)+1:]
}
