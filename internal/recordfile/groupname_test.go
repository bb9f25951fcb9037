// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestGroupName(t *testing.T) {
	for text, want := range map[string]string{
		"checkout":                        "checkout",
		"Check-Out_2.0":                   "Check-Out_2.0",
		"":                                "_empty",
		"_unset":                          "%5Funset",
		"_empty":                          "%5Fempty",
		".":                               "%2E",
		"..":                              "%2E%2E",
		"...":                             "%2E.%2E",
		"../../etc/passwd":                "%2E.%2F..%2Fetc%2Fpasswd",
		"/etc/passwd":                     "%2Fetc%2Fpasswd",
		`C:\x`:                            "C%3A%5Cx",
		"a\x00b":                          "a%00b",
		"a%2Fb":                           "a%252Fb",
		"a~b":                             "a%7Eb",
		"é":                               "%C3%A9",
		"\xff":                            "%FF",
		"con":                             "%63on",
		"NUL.txt":                         "%4EUL.txt",
		"console":                         "console",
		"-a":                              "-a",
		" a ":                             "%20a%20",
		"a.":                              "a%2E",
		"a..b":                            "a..b",
		strings.Repeat("a", maxGroupName): strings.Repeat("a", maxGroupName),
	} {
		if !foldsCase {
			assert.Equal(t, want, GroupName(text), "%q", text)
		}
		assert.True(t, IsGroupName(GroupName(text)), text)
	}
	assert.Equal(t, "_int-1", TypedGroupName("int", "1"))
	assert.Equal(t, "_double-%2D1.5", strings.ReplaceAll(TypedGroupName("double", "-1.5"), "--", "-%2D"))
	assert.Equal(t, "%43heck", escape("Check", true, true), "where case is folded")
	long := GroupName(strings.Repeat("a", 5000))
	assert.Len(t, long, truncatedGroupName+1+2*hashedBytes)
	assert.NotEqual(t, long, GroupName(strings.Repeat("a", 5001)))
	assert.NotContains(t, GroupName(strings.Repeat("é", 5000))[:truncatedGroupName], "~")
}
