// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package labels

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func pattern(t *testing.T, expression string) *Matcher {
	t.Helper()
	matchers, err := ParseSelector("{pod=~`" + expression + "`}")
	require.NoError(t, err)
	return matchers[0]
}

// TestWorkOfPatternsIsBounded_A2: an expression just below the limit of instructions ends its request before it has matched 10,000 values.
func TestWorkOfPatternsIsBounded_A2(t *testing.T) {
	large := pattern(t, "(x?){900}(z?){900}(v?){150}.*y")
	ctx, end := LimitWork(t.Context())
	defer end()
	matched := 0
	for ; matched < 10_000 && ctx.Err() == nil; matched++ {
		large.Matches(ctx, fmt.Sprint("checkout-", matched))
	}
	assert.Less(t, matched, 1000)
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	require.ErrorContains(t, WorkError(ctx), "must be at most 134217728; select less")
	assert.False(t, large.Matches(ctx, "y"))

	other, end := LimitWork(t.Context()) // each request has its own
	defer end()
	assert.True(t, large.Matches(other, "xy"))
	require.NoError(t, WorkError(other))
	assert.True(t, large.Matches(t.Context(), "checkout-y"), "without a limit")
}

// TestWorkOfKnownValuesIsDone: an expression that people write has work for all values of a large store, and each value counts once, however many
// records have it.
func TestWorkOfKnownValuesIsDone(t *testing.T) {
	m := pattern(t, "(checkout|cart)-[0-9]+")
	ctx, end := LimitWork(t.Context())
	defer end()
	for range 20 {
		for i := range 50_000 {
			require.Equal(t, i%2 == 0, m.Matches(ctx, fmt.Sprintf("%s-%d", []string{"cart", "other"}[i%2], i)))
		}
	}
	require.NoError(t, WorkError(ctx))
	for i := range 100 { // what is not kept is matched again
		assert.False(t, m.Matches(t.Context(), strings.Repeat("x", 100_000)+fmt.Sprint(i)))
	}
	assert.LessOrEqual(t, m.kept.size, maxKept)
}

// TestAnEndedRequestKeepsNoMatch: what Matches returns after the end means nothing, also for other requests.
func TestAnEndedRequestKeepsNoMatch(t *testing.T) {
	m := pattern(t, "a.*")
	ctx, end := LimitWork(t.Context())
	end()
	assert.False(t, m.Matches(ctx, "ab"))
	require.NoError(t, WorkError(ctx))
	assert.True(t, m.Matches(t.Context(), "ab"))
}
