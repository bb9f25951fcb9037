// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNamesAreBounded(t *testing.T) {
	var n names
	added := 0
	for i := range 3 * maxNames {
		if n.add(strconv.Itoa(i)) {
			added++
		}
		assert.False(t, n.add("0") && i > 0)
	}
	assert.Equal(t, maxNames, added)
	assert.Len(t, n.seen, maxNames)
}

func TestShortenedNames(t *testing.T) {
	assert.Equal(t, "checkout", shortened("checkout"))
	assert.Equal(t, strings.Repeat("é", 99), shortened(strings.Repeat("é", 99)))
	assert.Len(t, shortened("x"+strings.Repeat("é", 1000)), 199, "no part of a character")
}
