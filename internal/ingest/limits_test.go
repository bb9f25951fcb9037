// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestReceiversShareOneLimit(t *testing.T) {
	const size = 12_345_678
	first, second := SharedInFlight(size), SharedInFlight(size)
	assert.Same(t, first, second)
	assert.NotSame(t, first, SharedInFlight(size+1))
	runtime.KeepAlive(first)
}
