// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inUse is how many bytes all reservations hold.
func (b *budget) inUse() int64 {
	var free int64
	for step := b.size; step > 0; step /= 2 {
		for free+step <= b.size && b.free.TryAcquire(step) {
			free += step
		}
	}
	b.free.Release(free)
	return b.size - free
}

func TestBudgetHoldsAndGivesBack(t *testing.T) {
	b := newBudget(100, 0)
	one, two := b.reserve(), b.reserve()
	require.NoError(t, one.resize(t.Context(), 60))
	require.NoError(t, two.resize(t.Context(), 40))
	require.ErrorIs(t, two.resize(t.Context(), 41), errOverBudget)
	assert.EqualValues(t, 100, b.inUse(), "a refused resize changes nothing")
	require.NoError(t, one.resize(t.Context(), 10))
	require.NoError(t, two.resize(t.Context(), 90))
	one.release()
	one.release()
	assert.EqualValues(t, 90, b.inUse())
	two.release()
	assert.Zero(t, b.inUse())
}

// A request that needs more than there is runs when it is alone.
func TestBudgetLetsTheLargestRunAlone(t *testing.T) {
	b := newBudget(100, 0)
	large, other := b.reserve(), b.reserve()
	require.NoError(t, large.resize(t.Context(), 1000))
	require.ErrorIs(t, other.resize(t.Context(), 1), errOverBudget)
	require.NoError(t, large.resize(t.Context(), 2000))
	large.release()
	require.NoError(t, other.resize(t.Context(), 1))
	require.ErrorIs(t, large.resize(t.Context(), 1000), errOverBudget)
	other.release()
	assert.Zero(t, b.inUse())
}

func TestBudgetWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100, time.Second)
		one, two := b.reserve(), b.reserve()
		require.NoError(t, one.resize(t.Context(), 100))
		time.AfterFunc(999*time.Millisecond, one.release)
		require.NoError(t, two.resize(t.Context(), 50))
		synctest.Wait()
		assert.EqualValues(t, 50, b.inUse())

		start := time.Now()
		require.ErrorIs(t, one.resize(t.Context(), 51), errOverBudget)
		assert.Equal(t, time.Second, time.Since(start))
		require.ErrorIs(t, one.resize(t.Context(), 51), errOverBudget)
		assert.Equal(t, time.Second, time.Since(start), "all waiting of a reservation together")
	})
}

func TestBudgetEndsWithTheRequest(t *testing.T) {
	b := newBudget(100, time.Hour)
	one, two := b.reserve(), b.reserve()
	require.NoError(t, one.resize(t.Context(), 100))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, two.resize(ctx, 1), context.Canceled)
}

// Requests that each hold a part and wait for more do not block each other.
func TestBudgetDoesNotDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100, time.Second)
		const requests = 10
		results := make(chan error, requests)
		for range requests {
			go func() {
				held := b.reserve()
				defer held.release()
				if err := held.resize(t.Context(), 10); err != nil {
					results <- err
					return
				}
				time.Sleep(time.Millisecond) // all hold their first part now
				results <- held.resize(t.Context(), 60)
			}()
		}
		for range requests {
			if err := <-results; err != nil {
				require.ErrorIs(t, err, errOverBudget)
			}
		}
		synctest.Wait()
		assert.Zero(t, b.inUse())
	})
}
