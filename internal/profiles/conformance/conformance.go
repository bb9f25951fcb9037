// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package conformance checks OTLP profiles against the comments of profiles.proto.
//
// It reads the marshalled message through protobuf-go, so that it sees the written bytes
// and not pdata's view of them. It shares no code with internal/profiles/dictionary or the
// translators, prefers slow and obvious over fast, and never panics on indices.
//
// It has each rule of sig-profiling's profcheck (https://github.com/open-telemetry/sig-profiling/tree/main/profcheck):
//
//	profcheck                                              here
//	resource, scope profiles or profiles are empty         EmptyList
//	index out of range, of every field                     IndexRange
//	zero value at index 0 of each table                    ZeroValue
//	duplicate key in attribute_indices                     AttributeKeys
//	timestamps inside the time range of the profile        TimeRange
//	shape and length of values and timestamps              SampleData, SampleShape
//	memory_start < memory_limit, or both 0                 MappingRange
//	line, column and start_line not negative               Negative
//	length of trace_id and span_id                         LinkIDs, which also wants them not to be all zeros
//	duplicate strings and mappings                         Duplicate, of each table
//	unreferenced entries of each table                     Unreferenced
//
// The others are of the comments of profiles.proto, of the semantic conventions (BuildID, Units), or of readers.
package conformance

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Rule is the name of a rule.
type Rule string

// The rules that no output of this project may break, also those that the format only
// recommends: see Required.
const (
	Decode         Rule = "decode"           // protobuf-go reads the message
	UTF8           Rule = "utf-8"            // each string is valid UTF-8
	ZeroValue      Rule = "zero value"       // index 0 of each table is present and the zero value
	IndexRange     Rule = "index range"      // each index is inside its table
	Duplicate      Rule = "duplicate"        // no two entries of a table are equal by value
	Unreferenced   Rule = "unreferenced"     // each entry but index 0 is reached from a profile, resource or scope
	AttributeKeys  Rule = "attribute keys"   // keys are unique in a set of attributes
	KeyReference   Rule = "key reference"    // a key is written out or referenced, not both
	LinkIDs        Rule = "link ids"         // a link has a trace id and a span id
	ProfileID      Rule = "profile id"       // a profile id has 16 bytes, or none
	Payload        Rule = "original payload" // payload and format are set together
	SampleData     Rule = "sample data"      // a sample has values or timestamps; as many of each if it has both
	SampleShape    Rule = "sample shape"     // all samples of a profile are of one shape
	SampleIdentity Rule = "sample identity"  // {stack, set of attributes, link} is unique in a profile
)

// The rules that it may break, if its input does. FunctionNames is a rule of the format that pprof
// cannot always keep: a function may have a start line alone. Backends refuse or misread
// payloads that break SampleOrder or TimeRange: see docs/backends.md. A profile without samples is an idle interval.
const (
	EmptyProfile  Rule = "empty profile"  // a profile has samples
	SampleOrder   Rule = "sample order"   // profiles of a scope have their common sample identities in the same order
	SampleTypes   Rule = "sample types"   // pprof.scope.sample_type_order describes the profiles of its scope
	FunctionNames Rule = "function names" // a function has a name, a system name or a file name
	TimeRange     Rule = "time range"     // timestamps are inside the profile
	AddressRange  Rule = "address range"  // addresses are inside their mapping
	EmptyKey      Rule = "empty key"      // an attribute has a key
	NullAttribute Rule = "null attribute" // attribute_indices do not hold 0
	HiddenValue   Rule = "hidden value"   // pdata shows a string reference in attribute_table as empty
	EmptyList     Rule = "empty list"     // a message has resources, a resource scopes, and a scope profiles
	MappingRange  Rule = "mapping range"  // a mapping ends behind its start, or has neither
	Negative      Rule = "negative"       // lines, columns and start lines are not below 0
	BuildID       Rule = "build id"       // a mapping has a build ID
	Units         Rule = "units"          // units of attributes are those of UCUM
)

// Format is the version of the format that the rules are from.
const Format = "opentelemetry-proto v1.11.0 (profiles v1development)"

// recommended are the rules that the format says producers SHOULD keep, and those that readers need; of the others it
// says MUST. warnings are the rules that output of this project may break.
var (
	recommended = []Rule{EmptyProfile, SampleOrder, SampleTypes, Duplicate, Unreferenced, SampleShape, SampleIdentity, TimeRange, AddressRange, NullAttribute, HiddenValue, EmptyList, MappingRange, Negative, BuildID, Units}
	warnings    = []Rule{EmptyProfile, SampleOrder, SampleTypes, FunctionNames, TimeRange, AddressRange, EmptyKey, NullAttribute, HiddenValue, EmptyList, MappingRange, Negative, BuildID, Units}
)

// Required reports whether the format says that producers MUST keep the rule. It recommends the
// others (SHOULD), or readers fail on payloads that break them.
func (r Rule) Required() bool { return !slices.Contains(recommended, r) }

// Finding is one violation of a rule, or a warning.
type Finding struct {
	Rule Rule `json:"rule"`
	// Path is the place in the message: resource_profiles[2].scope_profiles[0].profiles[1].samples[7]
	// or dictionary.stack_table[3].location_indices[0].
	Path string `json:"path"`
	// Found is the content of that place, Wanted the content that conforms.
	Found  string `json:"found"`
	Wanted string `json:"wanted"`
}

// IsWarning reports whether output of this project may break the rule.
func (f Finding) IsWarning() bool { return slices.Contains(warnings, f.Rule) }

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s is %s: must be %s", f.Rule, f.Path, f.Found, f.Wanted)
}

// Report is the result of a check.
type Report struct {
	// Findings are in the order of the check, at most 20 for each rule.
	Findings []Finding
	// Counts are the numbers of findings by rule, including those over 20.
	Counts map[Rule]int
}

const (
	maxFindings = 20  // of a rule
	maxText     = 500 // bytes of Finding.Found, which may be a whole entry
)

// Violations returns the findings that are not warnings.
func (r *Report) Violations() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), Finding.IsWarning)
}

// Warnings returns the findings that are warnings.
func (r *Report) Warnings() []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return !f.IsWarning() })
}

// Check checks pd, which it does not change. Marshalling turns a string of a resource or
// scope into a reference if the string table has it, so these count as references.
func Check(pd pprofile.Profiles) *Report {
	message, err := Marshal(pd)
	if err != nil {
		return &Report{
			Findings: []Finding{{Rule: Decode, Path: "message", Found: err.Error(), Wanted: "readable by pdata"}},
			Counts:   map[Rule]int{Decode: 1},
		}
	}
	return CheckBytes(message)
}

// CheckBytes checks a marshalled message.
func CheckBytes(message []byte) *Report {
	c := &checker{result: Report{Counts: map[Rule]int{}}}
	data, invalid, err := Unmarshal(message)
	for _, s := range invalid {
		c.report(UTF8, s.Path, fmt.Sprintf("%q", s.Content), "valid UTF-8")
	}
	if err != nil {
		c.report(Decode, "message", err.Error(), "readable by protobuf-go")
		return &c.result
	}
	c.dict = data.GetDictionary()
	c.checkDictionary()
	c.checkProfiles(data)
	c.checkReached()
	return &c.result
}

func (c *checker) report(rule Rule, path, found, wanted string) {
	c.result.Counts[rule]++
	if c.result.Counts[rule] <= maxFindings {
		c.result.Findings = append(c.result.Findings, Finding{Rule: rule, Path: path, Found: shorten(found), Wanted: wanted})
	}
}

// shorten removes the middle of s if it is longer than maxText bytes.
func shorten(s string) string {
	if len(s) <= maxText {
		return s
	}
	cut := fmt.Sprintf(" ... (%d bytes) ... ", len(s)-maxText)
	return strings.ToValidUTF8(s[:maxText*2/3], "") + cut + strings.ToValidUTF8(s[len(s)-maxText/3:], "")
}
