// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReservationsShareTheLimit(t *testing.T) {
	f := NewInFlight(100, 0)
	one, two := f.Reserve(), f.Reserve()
	require.NoError(t, one.Resize(t.Context(), 60))
	require.NoError(t, two.Resize(t.Context(), 40))
	require.ErrorIs(t, two.Resize(t.Context(), 41), ErrInFlightLimit)
	assert.EqualValues(t, 100, f.InUse(), "a failed Resize changes nothing")
	require.NoError(t, one.Resize(t.Context(), 10))
	require.NoError(t, two.Resize(t.Context(), 90))
	one.Release()
	one.Release()
	assert.EqualValues(t, 90, f.InUse())
	two.Release()
	assert.Zero(t, f.InUse())
}

// A request that needs more than the limit runs when no other does.
func TestReservationOverTheLimitRunsAlone(t *testing.T) {
	f := NewInFlight(100, 0)
	large, other := f.Reserve(), f.Reserve()
	require.NoError(t, large.Resize(t.Context(), 1000))
	require.ErrorIs(t, other.Resize(t.Context(), 1), ErrInFlightLimit)
	require.NoError(t, large.Resize(t.Context(), 2000))
	large.Release()
	require.NoError(t, other.Resize(t.Context(), 1))
	require.ErrorIs(t, large.Resize(t.Context(), 1000), ErrInFlightLimit)
	other.Release()
	assert.Zero(t, f.InUse())
}

func TestResizeWaitsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewInFlight(100, time.Second)
		one, two := f.Reserve(), f.Reserve()
		require.NoError(t, one.Resize(t.Context(), 100))
		time.AfterFunc(999*time.Millisecond, one.Release)
		require.NoError(t, two.Resize(t.Context(), 50))
		synctest.Wait()
		assert.EqualValues(t, 50, f.InUse())

		start := time.Now()
		require.ErrorIs(t, one.Resize(t.Context(), 51), ErrInFlightLimit)
		assert.Equal(t, time.Second, time.Since(start))
		require.ErrorIs(t, one.Resize(t.Context(), 51), ErrInFlightLimit)
		assert.Equal(t, time.Second, time.Since(start), "a reservation waits for one second in total")
	})
}

func TestResizeEndsWithItsContext(t *testing.T) {
	f := NewInFlight(100, time.Hour)
	one, two := f.Reserve(), f.Reserve()
	require.NoError(t, one.Resize(t.Context(), 100))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, two.Resize(ctx, 1), context.Canceled)
}

// Requests that each hold a part and wait for more do not block each other.
func TestReservationsDoNotDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewInFlight(100, time.Second)
		const requests = 10
		results := make(chan error, requests)
		for range requests {
			go func() {
				held := f.Reserve()
				defer held.Release()
				if err := held.Resize(t.Context(), 10); err != nil {
					results <- err
					return
				}
				time.Sleep(time.Millisecond) // all hold their first part now
				results <- held.Resize(t.Context(), 60)
			}()
		}
		for range requests {
			if err := <-results; err != nil {
				require.ErrorIs(t, err, ErrInFlightLimit)
			}
		}
		synctest.Wait()
		assert.Zero(t, f.InUse())
	})
}
