// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pprofile"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
)

// The rules, which begin each message of a violation.
const (
	ruleDecode         = "decode"           // protobuf-go reads it
	ruleUTF8           = "utf-8"            // each string is valid UTF-8
	ruleZeroValue      = "zero value"       // index 0 of each table is present and the zero value
	ruleRange          = "index range"      // each index is inside its table
	ruleDuplicate      = "duplicate"        // no two entries of a table are equal by value
	ruleUnreferenced   = "unreferenced"     // each entry but index 0 is reached from a profile, resource or scope
	ruleAttributeKeys  = "attribute keys"   // keys are unique in a set of attributes
	ruleKeyReference   = "key reference"    // a key is written out or referenced, not both
	ruleLinkIDs        = "link ids"         // a link has a trace id and a span id
	ruleProfileID      = "profile id"       // a profile id has 16 bytes, or none
	rulePayload        = "original payload" // payload and format are set together
	ruleSampleData     = "sample data"      // a sample has values or timestamps; as many of each if it has both
	ruleSampleShape    = "sample shape"     // all samples of a profile are of one shape
	ruleSampleIdentity = "sample identity"  // {stack, set of attributes, link} is unique in a profile
)

// What the format only advises, which begins each warning, and what it asks for
// but pprof may lack: a function with a start line alone is kept, not lost.
const (
	adviceFunction  = "function names" // a function has a name, a system name or a file name
	adviceTime      = "time range"     // timestamps are inside the profile
	adviceAddress   = "address range"  // addresses are inside their mapping
	adviceEmptyKey  = "empty key"      // an attribute has a key
	adviceNull      = "null attribute" // attribute_indices do not hold 0
	adviceReference = "hidden value"   // pdata shows a string reference in attribute_table as empty
)

// messagesPerRule bounds how often one rule is reported; more are counted.
const messagesPerRule = 20

// messageBytes bounds one message: an entry written out can be long.
const messageBytes = 500

// Conformance holds pd against the comments of profiles.proto and says what is
// wrong, one message a finding, each beginning with the rule it breaks and
// naming the table, the index and what was found there. What the format only
// advises comes as warnings, except that duplicates, unreferenced entries and
// mixed shapes are violations here: no output of this module may have them.
//
// It looks at the marshalled form of a copy, as protobuf-go reads it: pd is not
// changed. Resource and scope strings count as references: a table string that
// equals one is referenced by it once marshalled. It never panics on indices,
// whatever they are.
func Conformance(pd pprofile.Profiles) (violations, warnings []string) {
	message, err := marshalCopy(pd)
	if err != nil {
		return []string{fmt.Sprintf("%s: pdata cannot marshal it: %v", ruleDecode, err)}, nil
	}
	return ConformanceBytes(message)
}

// ConformanceBytes is [Conformance] for a marshalled message, as it is found in
// a file or on the wire.
func ConformanceBytes(message []byte) (violations, warnings []string) {
	var f findings
	data, badStrings, err := decode(message)
	for _, bad := range badStrings {
		f.violate(ruleUTF8, "%s", bad)
	}
	if err != nil {
		f.violate(ruleDecode, "protobuf-go cannot read it: %v", err)
		return f.result()
	}
	dict := data.GetDictionary()
	if dict == nil {
		dict = &profilespb.ProfilesDictionary{}
	}
	c := newTablesCheck(&f, dict)
	c.checkTables()
	c.checkProfiles(data)
	c.checkReached()
	return f.result()
}

// RequireConforms fails tb, with every violation, unless pd passes
// [Conformance]. Warnings are logged.
func RequireConforms(tb testing.TB, pd pprofile.Profiles) {
	tb.Helper()
	requireConforms(tb, pd.ProfileCount(), func() ([]string, []string) { return Conformance(pd) })
}

// RequireConformsBytes is [RequireConforms] for a marshalled message.
func RequireConformsBytes(tb testing.TB, message []byte) {
	tb.Helper()
	requireConforms(tb, -1, func() ([]string, []string) { return ConformanceBytes(message) })
}

func requireConforms(tb testing.TB, profiles int, check func() ([]string, []string)) {
	tb.Helper()
	violations, warnings := check()
	if len(warnings) > 0 {
		tb.Logf("the format advises against:\n  %s", strings.Join(warnings, "\n  "))
	}
	if len(violations) == 0 {
		return
	}
	what := "the message"
	if profiles >= 0 {
		what = fmt.Sprintf("the payload of %d profiles", profiles)
	}
	tb.Fatalf("%s does not conform to the format:\n  %s", what, strings.Join(violations, "\n  "))
}

// findings collects messages, a bounded number a rule.
type findings struct {
	violations, warnings ruleMessages
}

type ruleMessages struct {
	messages []string
	rules    []string // in order of first message
	counts   map[string]int
}

func (f *findings) violate(rule, format string, args ...any) {
	f.violations.add(rule, format, args)
}

func (f *findings) warn(advice, format string, args ...any) {
	f.warnings.add(advice, format, args)
}

func (f *findings) result() (violations, warnings []string) {
	return f.violations.all(), f.warnings.all()
}

func (m *ruleMessages) add(rule, format string, args []any) {
	if m.counts == nil {
		m.counts = map[string]int{}
	}
	if m.counts[rule] == 0 {
		m.rules = append(m.rules, rule)
	}
	m.counts[rule]++
	if m.counts[rule] <= messagesPerRule {
		m.messages = append(m.messages, rule+": "+shorten(fmt.Sprintf(format, args...), messageBytes))
	}
}

func (m *ruleMessages) all() []string {
	out := m.messages
	for _, rule := range m.rules {
		if more := m.counts[rule] - messagesPerRule; more > 0 {
			out = append(out, fmt.Sprintf("%s: and %d more", rule, more))
		}
	}
	return out
}

// shorten cuts the middle out of s where it is longer than limit bytes.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := fmt.Sprintf(" ... (%d bytes) ... ", len(s)-limit)
	return strings.ToValidUTF8(s[:limit*2/3], "") + cut + strings.ToValidUTF8(s[len(s)-limit/3:], "")
}
