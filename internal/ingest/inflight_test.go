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

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const size = 32 << 20 // bytes: large bodies have 4 MiB, decompressed ones 5, work 22, of which one payload 14

func requireTooLarge(t *testing.T, err error) {
	t.Helper()
	var tooLarge *pproftranslator.LimitError
	require.ErrorAs(t, err, &tooLarge)
	require.ErrorContains(t, err, "max_in_flight")
}

func TestStagesShareTheLimit(t *testing.T) {
	f := NewInFlight(size)
	one, two, three := f.Reserve(0), f.Reserve(0), f.Reserve(0)
	require.NoError(t, one.Take(t.Context(), Work, 14<<20))
	requireTooLarge(t, one.Take(t.Context(), Work, 1))
	requireTooLarge(t, two.Take(t.Context(), Work, 14<<20+1))
	require.NoError(t, two.Take(t.Context(), Work, 8<<20))
	require.ErrorIs(t, three.Take(t.Context(), Work, 1), ErrInFlightLimit)
	require.NoError(t, three.TakeBody(t.Context(), 2<<20), "other stages have their own part")
	requireTooLarge(t, three.TakeBody(t.Context(), 1<<20))
	require.NoError(t, three.Take(t.Context(), Decompressed, 5<<20))
	assert.EqualValues(t, 29<<20, f.InUse())

	one.Shrink(Work, 1<<20)
	require.NoError(t, three.Take(t.Context(), Work, 13<<20))
	require.ErrorIs(t, three.TryTake(Work, 1<<20), ErrInFlightLimit)
	two.Shrink(Work, 0)
	require.NoError(t, three.TryTake(Work, 1<<20))
	requireTooLarge(t, three.TryTake(Work, 1))
	three.FreeBody()
	assert.EqualValues(t, 15<<20, f.InUse())
	for range 2 {
		one.Release()
		three.Release()
	}
	assert.Zero(t, f.InUse())
}

func TestTemporaryWorkThatDoesNotFitFreesNothing(t *testing.T) {
	f := NewInFlight(size)
	one, two := f.Reserve(0), f.Reserve(0)
	require.NoError(t, one.Take(t.Context(), Work, 14<<20))
	require.NoError(t, two.Take(t.Context(), Work, 8<<20))
	free, err := two.TakeWork(t.Context(), 1<<20)
	require.ErrorIs(t, err, ErrInFlightLimit)
	free()
	assert.EqualValues(t, 22<<20, f.InUse())

	one.Release()
	free, err = two.TakeWork(t.Context(), 1<<20)
	require.NoError(t, err)
	assert.EqualValues(t, 9<<20, f.InUse())
	free()
	assert.EqualValues(t, 8<<20, f.InUse())
}

func TestPayloadsWaitInTurnForOneSecondInTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewInFlight(size)
		one, large, small := f.Reserve(0), f.Reserve(time.Second), f.Reserve(time.Second)
		require.NoError(t, one.Take(t.Context(), Work, 14<<20))
		time.AfterFunc(999*time.Millisecond, one.Release)
		go func() { assert.NoError(t, large.Take(t.Context(), Work, 14<<20)) }()
		synctest.Wait()
		require.NoError(t, small.Take(t.Context(), Work, 10))
		synctest.Wait()
		assert.EqualValues(t, 14<<20, large.held[Work], "the first one is served first")

		start := time.Now()
		require.ErrorIs(t, small.Take(t.Context(), Work, 13<<20), ErrInFlightLimit)
		assert.Equal(t, time.Millisecond, time.Since(start), "it had waited already")
		forever := f.Reserve(-1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.ErrorIs(t, forever.Take(ctx, Work, 14<<20), context.DeadlineExceeded)
		large.Release()
		small.Release()
		assert.Zero(t, f.InUse())
	})
}

// What needs nothing of a stage does not queue behind those that wait for it.
func TestNothingIsTakenWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewInFlight(size)
		one, next, plain := f.Reserve(0), f.Reserve(time.Second), f.Reserve(time.Second)
		require.NoError(t, one.Take(t.Context(), Decompressed, 5<<20))
		go func() { assert.NoError(t, next.Take(t.Context(), Decompressed, 1)) }()
		synctest.Wait()

		start := time.Now()
		assert.NoError(t, plain.Take(t.Context(), Decompressed, 0))
		assert.Zero(t, time.Since(start))
		one.Release()
		synctest.Wait()
	})
}

// Large bodies that stall do not keep small ones out, nor payloads.
func TestLargeBodiesLeaveRoomForSmallOnes_M1(t *testing.T) {
	f := NewInFlight(size)
	for f.Reserve(0).TakeBody(t.Context(), 1<<20) == nil {
	}
	assert.EqualValues(t, 4<<20, f.InUse())
	for range 32 {
		require.NoError(t, f.Reserve(0).TakeBody(t.Context(), 32<<10))
	}
	require.NoError(t, f.Reserve(0).Take(t.Context(), Decompressed, 5<<20))
	require.NoError(t, f.Reserve(0).Take(t.Context(), Work, 14<<20))
}

// Baselines leave room for one payload.
func TestBaselinesLeaveRoomForAPayload(t *testing.T) {
	f := NewInFlight(size)
	require.NoError(t, f.Baseline(t.Context(), size/4))
	require.ErrorIs(t, f.Baseline(t.Context(), 1), ErrInFlightLimit)
	r := f.Reserve(0)
	require.NoError(t, r.Take(t.Context(), Work, f.MaxWork()))
	r.Release()
	f.FreeBaseline(size / 4)
	assert.Zero(t, f.InUse())
}
