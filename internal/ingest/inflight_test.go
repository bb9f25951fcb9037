// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const limit = 6400 // bytes: bodies have 1600, payloads 4800, one payload 3200

// hold does nothing within Work but hold what was expected.
func hold(r *Reservation, bytes int64) func() error { return func() error { return r.Resize(bytes) } }

func requireTooLarge(t *testing.T, err error) {
	t.Helper()
	var tooLarge *pproftranslator.LimitError
	require.ErrorAs(t, err, &tooLarge)
	require.ErrorContains(t, err, "max_in_flight")
}

func TestWorkSharesTheLimit(t *testing.T) {
	f := NewInFlight(limit)
	one, two := f.Reserve(0), f.Reserve(0)
	require.NoError(t, one.Work(t.Context(), 3000, hold(one, 3000)))
	require.NoError(t, two.Work(t.Context(), 1800, hold(two, 1000)))
	assert.EqualValues(t, 4000, f.InUse(), "what was expected and not needed is given back")
	three := f.Reserve(0)
	require.ErrorIs(t, three.Work(t.Context(), 801, hold(three, 0)), ErrInFlightLimit)
	one.Release()
	one.Release()
	require.NoError(t, three.Work(t.Context(), 801, hold(three, 801)))
	two.FreeWork()
	three.Release()
	assert.Zero(t, f.InUse())
}

// One payload has half of the limit, whatever else is running.
func TestPayloadMayHaveHalfOfTheLimit(t *testing.T) {
	f := NewInFlight(limit)
	other, r := f.Reserve(0), f.Reserve(0)
	for range 2 {
		require.NoError(t, r.Work(t.Context(), limit, func() error {
			require.NoError(t, r.Resize(2000))
			r.Keep()
			require.NoError(t, r.Resize(1200))
			requireTooLarge(t, r.Resize(1201))
			assert.EqualValues(t, 1200, r.Peak())
			return nil
		}), "more is never expected")
		r.Release()
		require.NoError(t, other.Work(t.Context(), 1600, hold(other, 1600)))
	}
}

// A payload that needs more than was expected takes what is free. Otherwise it starts
// again when it can have as much as a payload may have.
func TestWorkStartsAgainRatherThanHoldAndWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewInFlight(limit)
		other, r := f.Reserve(0), f.Reserve(time.Second)
		require.NoError(t, other.Work(t.Context(), 3000, hold(other, 3000)))
		calls := 0
		grow := func() error {
			calls++
			if calls > 1 {
				assert.Zero(t, other.granted, "all that a payload may have is there")
			}
			if err := r.Resize(1800); err != nil {
				return err
			}
			r.Keep()
			return r.Resize(1)
		}
		time.AfterFunc(time.Millisecond, func() {
			assert.EqualValues(t, 3000, f.InUse(), "while it waits it holds nothing")
			other.Release()
		})
		require.NoError(t, r.Work(t.Context(), 100, grow))
		assert.Equal(t, 2, calls)
		assert.EqualValues(t, 1801, f.InUse())
	})
}

func TestWorkWaitsInTurnForOneSecondInTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewInFlight(limit)
		one, large, small := f.Reserve(0), f.Reserve(time.Second), f.Reserve(time.Second)
		require.NoError(t, one.Work(t.Context(), 3000, hold(one, 3000)))
		time.AfterFunc(999*time.Millisecond, one.Release)
		go func() { assert.NoError(t, large.Work(t.Context(), 3000, hold(large, 3000))) }()
		synctest.Wait()
		require.NoError(t, small.Work(t.Context(), 10, hold(small, 10)))
		synctest.Wait()
		assert.EqualValues(t, 3000, large.granted, "the first one is served first")

		start := time.Now()
		require.ErrorIs(t, small.Work(t.Context(), 3000, hold(small, 0)), ErrInFlightLimit)
		assert.Equal(t, time.Millisecond, time.Since(start), "it had waited already")
		forever := f.Reserve(-1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.ErrorIs(t, forever.Work(ctx, 3000, hold(forever, 0)), context.DeadlineExceeded)
	})
}

// An error frees all, and is that of the function.
func TestWorkFreesAllAfterAnError(t *testing.T) {
	f, failed := NewInFlight(limit), errors.New("failed")
	r := f.Reserve(0)
	require.ErrorIs(t, r.Work(t.Context(), 100, func() error {
		require.NoError(t, r.Resize(1000))
		r.Keep()
		return failed
	}), failed)
	assert.Zero(t, f.InUse())
}

// Bodies that stall do not keep small ones out, nor payloads.
func TestLargeBodiesLeaveRoomForSmallOnes_M1(t *testing.T) {
	f := NewInFlight(64 << 20)
	var stalled []*Reservation
	for range 100 {
		r := f.Reserve(0)
		for bytes := int64(4 << 10); bytes <= 1<<20; bytes *= 2 {
			if r.Body(t.Context(), bytes) != nil {
				r.Release() // its client gets 429
				break
			}
		}
		stalled = append(stalled, r)
	}
	assert.Greater(t, f.InUse(), int64(4<<20))
	assert.LessOrEqual(t, f.InUse(), int64(16<<20), "a quarter")
	small, work := f.Reserve(0), f.Reserve(0)
	for bytes := range int64(64) {
		require.NoError(t, small.Body(t.Context(), bytes<<10))
	}
	require.NoError(t, work.Work(t.Context(), 32<<20, hold(work, 32<<20)))
	for _, r := range stalled {
		r.Release()
	}
	assert.EqualValues(t, 32<<20+63<<10, f.InUse())
}

// Whatever bodies hold, the largest can become as large as a body may be.
func TestGrowingBodiesDoNotBlockEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewInFlight(64 << 20)
		const bodies = 200
		done := make(chan error, bodies)
		for range bodies {
			go func() {
				r := f.Reserve(-1)
				defer r.Release()
				for bytes := int64(4 << 10); bytes <= 2*f.maxBody(); bytes *= 2 {
					if err := r.Body(t.Context(), bytes); err != nil {
						done <- err
						return
					}
					time.Sleep(rand.N(time.Millisecond))
				}
				done <- nil
			}()
		}
		for range bodies {
			require.NoError(t, <-done)
		}
		synctest.Wait()
		assert.Zero(t, f.InUse())
	})
}

func TestBodyIsBounded(t *testing.T) {
	f := NewInFlight(limit)
	r := f.Reserve(0)
	require.NoError(t, f.CheckBody(limit/16))
	requireTooLarge(t, f.CheckBody(limit/16+1))
	require.NoError(t, r.Body(t.Context(), 500))
	r.KeepBody()
	require.NoError(t, r.Body(t.Context(), 300))
	requireTooLarge(t, r.Body(t.Context(), 301))
	assert.EqualValues(t, 800, f.InUse())
	r.FreeBody()
	assert.Zero(t, f.InUse())
}

func TestBodyEndsWithItsContext(t *testing.T) {
	f := NewInFlight(limit)
	one, two := f.Reserve(0), f.Reserve(-1)
	require.NoError(t, one.Body(t.Context(), 800))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, two.Body(ctx, 800), context.Canceled)
	require.ErrorIs(t, f.Reserve(0).Body(t.Context(), 800), ErrInFlightLimit)
}

// Baselines take at most a quarter, so that a payload can always have its half.
func TestBaselinesLeaveRoomForAPayload(t *testing.T) {
	f := NewInFlight(limit)
	require.NoError(t, f.Baseline(t.Context(), limit/4))
	require.ErrorIs(t, f.Baseline(t.Context(), 1), ErrInFlightLimit)
	r := f.Reserve(0)
	require.NoError(t, r.Work(t.Context(), limit, hold(r, limit/2)))
	r.Release()
	f.FreeBaseline(limit / 4)
	assert.Zero(t, f.InUse())
}
