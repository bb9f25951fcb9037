// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import "fmt"

// Fields of the messages of pprof's profile.proto.
const (
	profileSampleType        = 1
	profileSample            = 2
	profileMapping           = 3
	profileLocation          = 4
	profileFunction          = 5
	profileString            = 6
	profileDropFrames        = 7
	profileKeepFrames        = 8
	profileTimeNanos         = 9
	profileDurationNanos     = 10
	profilePeriodType        = 11
	profilePeriod            = 12
	profileComment           = 13
	profileDefaultSampleType = 14
	profileDocURL            = 15

	valueTypeType = 1
	valueTypeUnit = 2

	sampleLocation = 1
	sampleValue    = 2
	sampleLabel    = 3

	labelKey     = 1
	labelString  = 2
	labelNumber  = 3
	labelNumUnit = 4

	mappingID              = 1
	mappingMemoryStart     = 2
	mappingMemoryLimit     = 3
	mappingFileOffset      = 4
	mappingFilename        = 5
	mappingBuildID         = 6
	mappingHasFunctions    = 7 // has_filenames and has_line_numbers follow
	mappingHasInlineFrames = 10

	locationID       = 1
	locationMapping  = 2
	locationAddress  = 3
	locationLine     = 4
	locationIsFolded = 5

	lineFunction = 1
	lineLine     = 2
	lineColumn   = 3

	functionID         = 1
	functionName       = 2
	functionSystemName = 3
	functionFilename   = 4
	functionStartLine  = 5
)

var profileFields = [...]string{
	profileSampleType: "sample_type", profileSample: "sample", profileMapping: "mapping",
	profileLocation: "location", profileFunction: "function", profileString: "string_table",
	profileDropFrames: "drop_frames", profileKeepFrames: "keep_frames", profileTimeNanos: "time_nanos",
	profileDurationNanos: "duration_nanos", profilePeriodType: "period_type", profilePeriod: "period",
	profileComment: "comment", profileDefaultSampleType: "default_sample_type", profileDocURL: "doc_url",
}

func profileField(field uint64) string {
	if field < uint64(len(profileFields)) && profileFields[field] != "" {
		return "the field " + profileFields[field]
	}
	return fmt.Sprintf("field %d", field)
}
