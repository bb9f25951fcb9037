// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"regexp"
	"strings"
	"testing"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

var rowTest = regexp.MustCompile(`(?m)^func Test([RPED][0-9]+)(?:_|[A-Z])\w*\(t \*testing\.T\)`)

// TestEachFaultRowHasATest: a test's name begins with the row of the fault tables that
// it is of.
func TestEachFaultRowHasATest(t *testing.T) {
	has := map[string]bool{}
	for _, name := range files(t, func(name string) bool { return strings.HasSuffix(name, "_test.go") }) {
		for _, m := range rowTest.FindAllSubmatch(read(t, name), -1) {
			has[string(m[1])] = true
		}
	}
	for _, row := range profiletest.FaultRows() {
		if !has[row] {
			t.Errorf("no test is named after row %s", row)
		}
		delete(has, row)
	}
	for row := range has {
		t.Errorf("a test is named after row %s, which there is not", row)
	}
}
