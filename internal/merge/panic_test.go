// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// A panic in Add leaves the counts of what was added before.
func TestCountsAfterPanic(t *testing.T) {
	options := defaultOptions()
	options.SplitBy = []string{"service.name"}
	w := NewWindow(options)
	first := payloadtest.With(payloadtest.Interval(1, 1, 1), "service.name", "a")
	require.NoError(t, add(w, first))
	require.NoError(t, add(w, first))
	partition := partitionsOf(w)[0]
	want := w.PartitionCounts(partition)

	second := payloadtest.With(payloadtest.Interval(1, 1, 1), "service.name", "b")
	require.NoError(t, add(w, second))
	delete(w.partitions, partitionsOf(w)[1])
	require.Panics(t, func() { _ = add(w, payloadtest.InOne(t, first, second)) })
	require.Equal(t, want, w.PartitionCounts(partition))
}
