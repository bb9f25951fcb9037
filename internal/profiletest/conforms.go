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

// RequireConforms fails tb with every violation, if there is one. It logs warnings.
func RequireConforms(tb testing.TB, pd pprofile.Profiles) {
	tb.Helper()
	requireConforms(tb, fmt.Sprintf("the payload of %d profiles", pd.ProfileCount()), conformance.Check(pd))
}

// RequireConformsBytes is [RequireConforms] for a marshalled message.
func RequireConformsBytes(tb testing.TB, message []byte) {
	tb.Helper()
	requireConforms(tb, "the message", conformance.CheckBytes(message))
}

func requireConforms(tb testing.TB, what string, report *conformance.Report) {
	tb.Helper()
	if warnings := report.Warnings(); len(warnings) > 0 {
		tb.Logf("the format advises against:\n  %s", lines(warnings))
	}
	if violations := report.Violations(); len(violations) > 0 {
		tb.Fatalf("%s does not conform to the format:\n  %s", what, lines(violations))
	}
}

func lines(findings []conformance.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		b.WriteString(f.String() + "\n  ")
	}
	return b.String()
}
