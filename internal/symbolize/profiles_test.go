// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
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
