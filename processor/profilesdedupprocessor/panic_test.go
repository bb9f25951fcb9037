// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// changed is a payload that was changed after its check, so that merging it panics.
func changed(t *testing.T, p *dedupProcessor) *merge.Payload {
	t.Helper()
	one := payloadtest.With(payloadtest.ManyStacks(1, 0), "service.name", "checkout")
	pd := payloadtest.InOne(t, one, one) // the first is merged before the panic
	payload, err := merge.Check(pd, p.options)
	require.NoError(t, err)
	pd.ResourceProfiles().At(1).ScopeProfiles().At(0).Profiles().At(0).Samples().At(0).SetStackIndex(-1)
	return payload
}

// A panic in the check of a payload rejects that payload alone. A panic in the merge drops the window,
// which may be half-changed, with its acknowledged payloads. The processor continues.
func TestPanicInMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var next downstream
		p, metric := newCounted(t, &next, func(c *Config) { c.SplitBy = []string{"service.name"} })
		consume := func(id byte) {
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.With(identified(id, 10), "service.name", "checkout")))
		}

		consume(1)
		withoutOptions := &dedupProcessor{cfg: p.cfg, logger: p.logger, telemetry: p.telemetry}
		err := withoutOptions.ConsumeProfiles(t.Context(), payloadtest.Interval(1, 1, 1))
		require.ErrorIs(t, err, errMergePanicked)
		require.True(t, consumererror.IsPermanent(err))
		time.Sleep(time.Minute)
		require.EqualValues(t, 10, next.total(), "the window has not changed")

		_, err = p.add(t.Context(), changed(t, p), 1)
		require.ErrorIs(t, err, errMergePanicked)
		require.Nil(t, p.open, "nothing else was in the window")
		require.Zero(t, metric("dropped_samples", ""))

		consume(2)
		consume(3)
		_, err = p.add(t.Context(), changed(t, p), 1)
		require.ErrorIs(t, err, errMergePanicked)
		require.EqualValues(t, 2, metric("dropped_samples", string(reasonPanic)))
		require.EqualValues(t, 2, metric("dropped_profiles", string(reasonPanic)))
		consume(3) // no longer a duplicate
		consume(4)
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, 30, next.total())
		require.EqualValues(t, 1, metric("rejected_payloads", string(reasonPanic)))
		profiletest.Account(t, "3 panics in a merge", 5, int(next.total()/10), 2)
	})
}

// With on_flush, callers of a window that a panic dropped get a retryable error.
func TestPanicInMergeAnswersCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var next downstream
		p := newTestProcessor(t, &next, onFlush)
		var wg sync.WaitGroup
		wg.Go(func() {
			err := p.ConsumeProfiles(t.Context(), identified(1, 1))
			assert.ErrorContains(t, err, errWindowPanicked.Error())
			assert.False(t, consumererror.IsPermanent(err))
			assert.NoError(t, p.ConsumeProfiles(t.Context(), identified(1, 1)))
		})
		synctest.Wait()
		_, err := p.add(t.Context(), changed(t, p), 1)
		require.ErrorIs(t, err, errMergePanicked)
		wg.Wait()
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, 1, next.total())
	})
}

// Without a window, the caller gets an error, and its retry does not wait for an outcome that never comes.
func TestPanicWithoutWindow(t *testing.T) {
	next := &downstream{answer: func(int) error { panic("next consumer") }}
	p := newTestProcessor(t, next, func(c *Config) { c.Window = 0 })
	require.True(t, consumererror.IsPermanent(p.ConsumeProfiles(t.Context(), identified(1, 5))))
	next.answers(nil)
	require.NoError(t, p.ConsumeProfiles(t.Context(), identified(1, 5)))
	require.EqualValues(t, 5, next.total())
	require.NoError(t, p.Shutdown(t.Context()))
}

// A panic of the next consumer drops its payload, and no other.
func TestPanicOfNextConsumer(t *testing.T) {
	for _, retried := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var next downstream
			p, metric := newCounted(t, &next, func(c *Config) { c.Window = time.Second })
			next.answers(func(attempt int) error {
				if retried && attempt == 1 {
					return unavailable(1)
				}
				panic("next consumer")
			})
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.Interval(1, 1, 1)))
			time.Sleep(time.Minute)
			next.answers(nil)
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.Interval(1, 1, 10)))
			require.NoError(t, p.Shutdown(t.Context()))
			require.EqualValues(t, 10, next.total())
			require.EqualValues(t, 1, metric("dropped_samples", string(reasonPanic)))
			profiletest.Account(t, "1 panics of the next consumer", 2, 1, 1)
		})
	}
}

// A window that cannot be emitted is dropped, and the next one is sent.
func TestPanicInEmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var next downstream
		p, metric := newCounted(t, &next, nil)
		broken := &partition{outcome: &outcome{done: make(chan struct{})}, source: &windowPart{&closedWindow{unsent: 1}, ""}}
		broken.counts.Samples = 1
		p.sending.Go(func() { p.deliver(broken) })
		synctest.Wait()
		require.ErrorIs(t, broken.outcome.err, errExportPanicked)
		require.NoError(t, p.ConsumeProfiles(t.Context(), service("b", 100)))
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, 100, next.total())
		require.EqualValues(t, 1, metric("dropped_samples", string(reasonPanic)))
	})
}
