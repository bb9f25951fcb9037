// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

// Attribute keys of the semantic conventions (v1.41.0, namespaces pprof and
// process), and those of this project.
const (
	attrScopeSampleTypeOrder   = "pprof.scope.sample_type_order"
	attrScopeDefaultSampleType = "pprof.scope.default_sample_type"
	attrProfileComment         = "pprof.profile.comment"
	attrProfileDropFrames      = "pprof.profile.drop_frames"
	attrProfileKeepFrames      = "pprof.profile.keep_frames"
	attrProfileDocURL          = "pprof.profile.doc_url"
	attrLocationIsFolded       = "pprof.location.is_folded"
	attrHasFunctions           = "pprof.mapping.has_functions"
	attrHasFilenames           = "pprof.mapping.has_filenames"
	attrHasLineNumbers         = "pprof.mapping.has_line_numbers"
	attrHasInlineFrames        = "pprof.mapping.has_inline_frames"
	attrBuildIDGNU             = "process.executable.build_id.gnu"
	attrBuildIDGo              = "process.executable.build_id.go"
	attrBuildIDHTLHash         = "process.executable.build_id.htlhash"
	attrExecutableName         = "process.executable.name"
)

// Keys of the list that stands for one of several values of a label whose units
// differ.
const (
	elementValue = "value"
	elementUnit  = "unit"
)

// attrMappingHas are the flags of a mapping in the order of their fields.
var attrMappingHas = [4]string{attrHasFunctions, attrHasFilenames, attrHasLineNumbers, attrHasInlineFrames}

// isGoBuildID tells whether id has the form of a Go build ID: two or four parts
// of 20 characters of base64url, separated by slashes.
func isGoBuildID(id []byte) bool {
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
