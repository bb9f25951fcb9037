// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
)

const size = 32 << 20 // bytes: 8 MiB for bodies, 24 MiB for work

func requireTooLarge(t *testing.T, err error, needed, available int64) {
	t.Helper()
	var tooLarge *budget.TooLargeError
	require.ErrorAs(t, err, &tooLarge)
	require.Equal(t, needed, tooLarge.Needed)
	require.Equal(t, available, tooLarge.Available)
	require.ErrorContains(t, err, "max_in_flight")
}

func TestReceiversShareTheLargestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shared, other budget.Shared
		b := shared.AtLeast(size)
		assert.NotSame(t, b, other.AtLeast(size))
		assert.Same(t, b, shared.AtLeast(size/2))
		first, waiting := b.Lease(0), b.Lease(-1)
		require.NoError(t, first.Take(24<<20))
		got := make(chan error, 1)
		go func() { got <- waiting.Within(t.Context(), func() error { return waiting.Take(24 << 20) }) }()
		synctest.Wait()
		assert.Empty(t, got)
		assert.Same(t, b, shared.AtLeast(2*size))
		require.NoError(t, <-got, "it waited for what there is now")
		assert.EqualValues(t, 48<<20, b.InUse())
		requireTooLarge(t, first.Take(24<<20+1), 48<<20+1, 48<<20)
	})
}

func TestWhatFitsIntoTheWorkPoolIsTaken(t *testing.T) {
	b := budget.New(size)
	one, two := b.Lease(0), b.Lease(0)
	require.NoError(t, one.Take(24<<20))
	requireTooLarge(t, one.Take(1), 24<<20+1, 24<<20)
	require.ErrorIs(t, two.Take(1), budget.ErrFull)
	require.NoError(t, two.TakeBody(t.Context(), 4<<20), "bodies have their own pool")
	requireTooLarge(t, two.TakeBody(t.Context(), 1), 4<<20+1, 4<<20)
	assert.EqualValues(t, 28<<20, b.InUse())

	one.Free(1 << 20)
	require.NoError(t, two.Take(1<<20))
	require.ErrorIs(t, two.Take(1), budget.ErrFull)
	two.ShrinkBody(1 << 20)
	assert.EqualValues(t, 25<<20, b.InUse())
	for range 2 {
		one.Release()
		two.Release()
	}
	assert.Zero(t, b.InUse())
}

// Large bodies that stall leave room for small ones, and for work.
func TestLargeBodiesLeaveRoomForSmallOnes_M1(t *testing.T) {
	b := budget.New(size)
	for bytes := int64(4 << 20); bytes >= 256<<10; bytes /= 2 {
		for b.Lease(0).TakeBody(t.Context(), bytes) == nil {
		}
	}
	for range 8 {
		require.NoError(t, b.Lease(0).TakeBody(t.Context(), 16<<10))
	}
	require.NoError(t, b.Lease(0).Take(24<<20))
}

// A body of a push never waits. One of a file does, if its lease holds nothing.
func TestBodiesWaitIfTheyCanBeReadLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(size)
		one, push, file := b.Lease(0), b.Lease(time.Second), b.Lease(-1)
		require.NoError(t, one.TakeBody(t.Context(), 4<<20))
		time.AfterFunc(time.Hour, one.Release)
		start := time.Now()
		require.ErrorIs(t, push.TakeBody(t.Context(), 3<<20), budget.ErrFull)
		assert.Zero(t, time.Since(start))
		require.NoError(t, file.TakeBody(t.Context(), 3<<20))
		assert.Equal(t, time.Hour, time.Since(start))
		require.NoError(t, one.TakeBody(t.Context(), 5<<19))
		require.NoError(t, one.TakeBody(t.Context(), 1<<20))
		require.ErrorIs(t, file.TakeBody(t.Context(), 1<<20), budget.ErrFull, "not while it holds some")
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, b.Lease(-1).TakeBody(canceled, 4<<20), context.Canceled)
	})
}

// An attempt that lacks bytes is repeated when all that it needs is reserved: it holds nothing while it waits, and the
// first one is served first.
func TestPayloadsWaitInTurnForOneSecondInTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(size)
		one, large, small := b.Lease(0), b.Lease(time.Second), b.Lease(time.Second)
		require.NoError(t, one.Take(12<<20))
		time.AfterFunc(999*time.Millisecond, one.Release)
		attempts := 0
		go func() {
			assert.NoError(t, large.Within(t.Context(), func() error {
				attempts++
				return errors.Join(large.Take(10<<20), large.Take(10<<20))
			}))
		}()
		synctest.Wait()
		assert.EqualValues(t, 12<<20, b.InUse(), "nothing is held while waiting")
		start := time.Now()
		require.NoError(t, small.Within(t.Context(), func() error { return small.Take(10) }))
		assert.Equal(t, 999*time.Millisecond, time.Since(start), "it does not overtake")
		synctest.Wait()
		assert.Equal(t, 2, attempts)
		assert.EqualValues(t, 20<<20, large.Used())

		small.Free(10)
		start = time.Now()
		require.ErrorIs(t, small.Within(t.Context(), func() error { return small.Take(13 << 20) }), budget.ErrFull)
		assert.Equal(t, time.Millisecond, time.Since(start), "it had waited already")
		forever := b.Lease(-1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.ErrorIs(t, forever.Within(ctx, func() error { return forever.Take(14 << 20) }), context.DeadlineExceeded)
		large.Release()
		small.Release()
		assert.Zero(t, b.InUse())
	})
}

func TestAnAttemptReturnsWhatItReservedInVain(t *testing.T) {
	b := budget.New(size)
	l := b.Lease(0)
	require.NoError(t, l.Within(t.Context(), func() error {
		require.NoError(t, l.Reserve(20<<20))
		require.NoError(t, l.Take(15<<20))
		l.Free(10 << 20)
		assert.EqualValues(t, 20<<20, b.InUse())
		return nil
	}))
	assert.EqualValues(t, 5<<20, b.InUse())
}

// Baselines take from what one payload may have. One that waits for more than that is refused then.
func TestBaselinesAreNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(size)
		scrape, large := b.Lease(-1), b.Lease(-1)
		require.NoError(t, scrape.Take(size/4+1))
		refused := make(chan error, 1)
		go func() { refused <- large.Within(t.Context(), func() error { return large.Take(20 << 20) }) }()
		synctest.Wait()
		require.False(t, scrape.KeepBaseline(size/4+1))
		require.True(t, scrape.KeepBaseline(size/4))
		requireTooLarge(t, <-refused, 20<<20, 16<<20)
		scrape.Release()
		require.NoError(t, large.Take(16<<20))
		large.Release()
		assert.EqualValues(t, size/4, b.InUse())
		b.FreeBaseline(size / 4)
		assert.Zero(t, b.InUse())
	})
}

func TestMergedPayloadCountsLittle(t *testing.T) {
	b := budget.New(size)
	l := b.Lease(0)
	require.NoError(t, l.Take(10<<20))
	large, endLarge := l.Call(t.Context(), 9<<20)
	small, endSmall := l.Call(t.Context(), 1<<20-1000)
	budget.Merged(context.WithoutCancel(small))
	assert.EqualValues(t, 9<<20+1000+budget.Floor, l.Used())
	for range 2 {
		budget.Merged(large)
		assert.EqualValues(t, 1000+2*budget.Floor, b.InUse())
	}
	tiny, endTiny := l.Call(t.Context(), 1000)
	budget.Merged(tiny)
	assert.EqualValues(t, 1000+2*budget.Floor, b.InUse(), "less than the floor")
	for range 2 {
		endLarge()
		endSmall()
		endTiny()
	}
	assert.Zero(t, b.InUse())

	require.NoError(t, l.Take(1<<20))
	budget.Merged(large)
	assert.EqualValues(t, 1<<20, b.InUse(), "after the end of the call")
	budget.Merged(t.Context())
}

// Many leases at once never have more than there is, nobody waits for ever, and all is returned.
func TestLeasesDoNotBlockEachOther(t *testing.T) {
	b := budget.New(1 << 20)
	var running sync.WaitGroup
	for seed := range uint64(16) {
		running.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for range 200 {
				l := b.Lease(-1)
				if err := l.TakeBody(t.Context(), random.Int64N(100<<10)); !assert.NoError(t, err) {
					return
				}
				err := l.Within(t.Context(), func() error {
					for range 4 {
						if err := l.Take(random.Int64N(150 << 10)); err != nil {
							return err
						}
						runtime.Gosched()
					}
					return nil
				})
				if !assert.NoError(t, err) || !assert.LessOrEqual(t, b.InUse(), int64(1<<20)) {
					return
				}
				ctx, end := l.Call(t.Context(), l.Used())
				budget.Merged(ctx)
				end()
				l.Release()
			}
		})
	}
	running.Wait()
	assert.Zero(t, b.InUse())
}
