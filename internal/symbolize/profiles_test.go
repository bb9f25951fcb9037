// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNamesAreDemangledWithoutVersions(t *testing.T) {
	for symbol, want := range map[string][3]string{ // none, short, full
		"_ZN4Tree4leafEi":      {"_ZN4Tree4leafEi", "Tree::leaf", "Tree::leaf(int)"},
		"read@GLIBC_2.2.5":     {"read@GLIBC_2.2.5", "read", "read"},
		"memcpy@@GLIBC_2.14":   {"memcpy@@GLIBC_2.14", "memcpy", "memcpy"},
		"runtime.memmove.abi0": {"runtime.memmove.abi0", "runtime.memmove", "runtime.memmove"},
		"main.main":            {"main.main", "main.main", "main.main"},
	} {
		for i, as := range []string{DemangleNone, DemangleShort, DemangleFull} {
			assert.Equal(t, want[i], nameOf(symbol, as), as)
		}
	}
}

// TestNamesThatGrowExponentiallyAreCut: each type is a pair of the one before, a name of a gigabyte in 387 bytes.
func TestNamesThatGrowExponentiallyAreCut(t *testing.T) {
	symbol := "_Z1fSt4pairIiiE"
	for i := range 24 {
		before := "S" + strings.ToUpper(strconv.FormatInt(int64(2*i), 36)) + "_"
		symbol += "St4pairI" + before + before + "E"
	}
	assert.Len(t, nameOf(symbol, DemangleFull), 1<<14)
}
