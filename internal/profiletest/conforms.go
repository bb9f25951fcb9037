// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/conformance"
)

// Conformance returns what [conformance.Check] finds, as text.
func Conformance(pd pprofile.Profiles) (violations, warnings []string) {
	return texts(conformance.Check(pd))
}

// ConformanceBytes is [Conformance] for a marshalled message.
func ConformanceBytes(message []byte) (violations, warnings []string) {
	return texts(conformance.CheckBytes(message))
}

func texts(report *conformance.Report) (violations, warnings []string) {
	for _, f := range report.Violations() {
		violations = append(violations, f.String())
	}
	for _, f := range report.Warnings() {
		warnings = append(warnings, f.String())
	}
	return violations, warnings
}

// RequireConforms fails tb with every violation, if there is one. It logs warnings.
func RequireConforms(tb testing.TB, pd pprofile.Profiles) {
	tb.Helper()
	violations, warnings := Conformance(pd)
	requireConforms(tb, fmt.Sprintf("the payload of %d profiles", pd.ProfileCount()), violations, warnings)
}

// RequireConformsBytes is [RequireConforms] for a marshalled message.
func RequireConformsBytes(tb testing.TB, message []byte) {
	tb.Helper()
	violations, warnings := ConformanceBytes(message)
	requireConforms(tb, "the message", violations, warnings)
}

func requireConforms(tb testing.TB, what string, violations, warnings []string) {
	tb.Helper()
	if len(warnings) > 0 {
		tb.Logf("the format advises against:\n  %s", strings.Join(warnings, "\n  "))
	}
	if len(violations) > 0 {
		tb.Fatalf("%s does not conform to the format:\n  %s", what, strings.Join(violations, "\n  "))
	}
}
