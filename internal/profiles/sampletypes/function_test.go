// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sampletypes_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

func TestFunctionsAreShownByNameOrSymbol(t *testing.T) {
	doubling := "_Z1fSt4pairIiiE" // each type is a pair of the one before
	for i := range 24 {
		before := "S" + strings.ToUpper(strconv.FormatInt(int64(2*i), 36)) + "_"
		doubling += "St4pairI" + before + before + "E"
	}
	long := "_Z" + strconv.Itoa(2000) + strings.Repeat("a", 2000) + "v"
	for _, c := range [][3]string{ // name, system name, shown
		{"", "", ""},
		{"main.main", "main.main", "main.main"},
		{"", "main.main", "main.main"},
		{"main.main", "", "main.main"},
		{"_ZN3foo3barEv", "_ZN3foo3barEv", "foo::bar"},
		{"", "_ZN3foo3barEv", "foo::bar"},
		{"_ZN3foo3barEv", "", "foo::bar"},
		{"", "__ZN3foo3barEv", "foo::bar"}, // macOS
		{"_ZN4core3fmt5write17h01e2f3a4b5c6d7e8E", "_ZN4core3fmt5write17h01e2f3a4b5c6d7e8E", "core::fmt::write"},
		{"_RNvNtCs1234_4core3fmt5write", "_RNvNtCs1234_4core3fmt5write", "core::fmt::write"},
		{"_ZSt4sortIPiEvT_S1_", "_ZSt4sortIPiEvT_S1_", "std::sort"},
		{"foo::bar(int)", "_ZN3foo3barEi", "foo::bar(int)"}, // the profiler's own
		{"foo::bar(int)", "foo::bar(int)", "foo::bar(int)"},
		{"_Zebra", "_Zebra", "_Zebra"},
		{"__libc_start_main", "__libc_start_main", "__libc_start_main"},
		{doubling, doubling, "f"},
		{long, long, long},
	} {
		assert.Equal(t, c[2], sampletypes.FunctionName(c[0], c[1]), c)
	}
}
