// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query_test

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

func TestNeighborsCountAStackOnce(t *testing.T) {
	p := expand.Profile{
		Scope: expand.Entity{Attributes: []expand.Attribute{{Key: attrkey.ProfileType, Value: "cpu"}}}, Type: "cpu", Unit: "nanoseconds",
		Time: nano(0), Duration: 10e9, PeriodType: "cpu", PeriodUnit: "nanoseconds", Period: 1e7,
		Resource: expand.Entity{Attributes: []expand.Attribute{{Key: "service.name", Value: "checkout"}}},
	}
	for _, s := range []struct {
		seconds int64
		stack   []string // the innermost first
	}{
		{1, []string{"encode", "handle", "main"}},
		{2, []string{"copy", "encode", "walk", "encode", "handle", "main"}}, // encode calls itself by walk
		{3, []string{"encode", "encode", "main"}},
		{4, []string{"handle", "main"}},
	} {
		sample := &expand.Sample{Sum: big.NewInt(s.seconds * 1e9)}
		for _, name := range s.stack {
			sample.Stack = append(sample.Stack, &expand.Frame{Lines: []expand.Line{{Function: name}}})
		}
		p.Samples = append(p.Samples, sample)
	}
	s := source(t, profiletest.Build(t, p))
	c, err := query.Compare(t.Context(), s, &query.Selection{From: at(0), To: at(10)}, s, nil)
	require.NoError(t, err)
	of, ok := c.Neighbors(c.Shown(), "encode")
	require.True(t, ok)
	// Per second of ten.
	assert.Equal(t, query.FunctionValue{Self: 0.4e9, Total: 0.6e9}, of.FunctionValue)
	assert.Equal(t, []query.Neighbor{{"encode", 0.3e9}, {"handle", 0.3e9}, {"main", 0.3e9}, {"walk", 0.2e9}}, of.Callers)
	assert.Equal(t, []query.Neighbor{{"encode", 0.3e9}, {"copy", 0.2e9}, {"walk", 0.2e9}}, of.Callees)
	_, ok = c.Neighbors(c.Shown(), "absent")
	assert.False(t, ok)
}
