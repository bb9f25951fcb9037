// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// half is a next consumer that accepts the first half of the resources, at most all but one, and
// returns the rest in a retryable or permanent error.
type half struct {
	accepted downstream

	mu       sync.Mutex // guards the following
	fail     func(error) error
	attempts int
}

func (h *half) consume(ctx context.Context, pd pprofile.Profiles) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts++
	n := pd.ResourceProfiles().Len()
	if n < 2 {
		return h.accepted.ConsumeProfiles(ctx, pd)
	}
	rest := pprofile.NewProfiles()
	pd.CopyTo(rest)
	keep := func(pd pprofile.Profiles, from, to int) {
		i := -1
		pd.ResourceProfiles().RemoveIf(func(pprofile.ResourceProfiles) bool { i++; return i < from || i >= to })
	}
	keep(pd, 0, n/2)
	keep(rest, n/2, n)
	if err := h.accepted.ConsumeProfiles(ctx, pd); err != nil {
		return err
	}
	return h.fail(xconsumererror.NewProfiles(errors.New("unavailable"), rest))
}

func same(err error) error { return err }

// The part of a payload that the next consumer accepted is not sent again.
func TestRetrySendsOnlyTheFailedPart_P8(t *testing.T) {
	const services = 8
	for _, acknowledge := range []string{acknowledgeOnReceive, acknowledgeOnFlush} {
		synctest.Test(t, func(t *testing.T) {
			var errs []error
			next := half{fail: func(err error) error { errs = append(errs, err); return err }}
			p, metric := newCounted(t, nextFunc(next.consume), func(c *Config) { c.Window, c.Acknowledge = time.Second, acknowledge })
			var payload pprofile.Profiles
			for i := range services {
				pd := payloadtest.With(payloadtest.Interval(1, 1, 1<<i), "service.name", fmt.Sprint("service-", i))
				if i > 0 {
					pd = payloadtest.InOne(t, payload, pd)
				}
				payload = pd
			}
			require.NoError(t, p.ConsumeProfiles(t.Context(), payload))
			time.Sleep(time.Minute)
			require.NoError(t, p.Shutdown(t.Context()))
			require.Equal(t, 4, next.attempts)
			require.EqualValues(t, 1<<services-1, next.accepted.total())
			require.Len(t, errs, 3)
			for _, err := range errs {
				rest, _ := ingest.NotAccepted(err)
				service, _ := rest.ResourceProfiles().At(0).Resource().Attributes().Get("service.name")
				require.Contains(t, service.Str(), "service-", "what is the next consumer's does not change")
			}
			require.EqualValues(t, services, metric("outgoing_samples", ""))
			require.Zero(t, metric("dropped_samples", ""))
			require.Zero(t, p.admission.retained())
			profiletest.Account(t, "3 errors of the next consumer, with a part", 1<<services-1, int(next.accepted.total()), 0)
		})
	}
}

// A permanent error of a part drops that part. The part that one of two consumers did not accept is not that of the
// other: all of it is retried, and this consumer accepts half again.
func TestOnlyTheFailedPartIsDroppedOrRetried_P8(t *testing.T) {
	failed := 0
	for _, test := range []struct {
		fail              func(error) error
		accepted, dropped int64
	}{
		{consumererror.NewPermanent, 1, 1},
		{func(err error) error {
			if failed++; failed == 1 {
				return errors.Join(err, errors.New("the other is unavailable"))
			}
			return nil
		}, 2, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			next := half{fail: test.fail}
			p, metric := newCounted(t, nextFunc(next.consume), nil)
			require.NoError(t, p.ConsumeProfiles(t.Context(), ofTwoServices(t)))
			require.NoError(t, p.Shutdown(t.Context()))
			require.Equal(t, test.accepted, next.accepted.total())
			require.Equal(t, test.dropped, metric("dropped_samples", string(reasonPermanent)))
			profiletest.Account(t, "1 errors of a part", 2, int(test.accepted), int(test.dropped))
		})
	}
}

// The failed part of a window, or of one of several partitions, is not that of the caller's payload. Without a window, the
// other part is counted as accepted.
func TestErrorForCallersHasNoPart(t *testing.T) {
	for _, test := range []struct {
		change   func(*Config)
		fail     func(error) error
		partial  bool
		accepted int
	}{
		{func(c *Config) { c.Window = 0 }, same, true, 1},
		{func(c *Config) { c.Window, c.SplitBy = 0, []string{"tenant"} }, same, false, 2},
		{onFlush, same, false, 3},
		{onFlush, consumererror.NewPermanent, false, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			next := half{fail: test.fail}
			p, metric := newCounted(t, nextFunc(next.consume), func(c *Config) { test.change(c); c.RetryOnFailure.Enabled = false })
			err := p.ConsumeProfiles(t.Context(), payloadtest.InOne(t, ofTwoServices(t), payloadtest.With(payloadtest.Interval(1, 1, 100), "tenant", "2")))
			require.NoError(t, p.Shutdown(t.Context()))
			require.ErrorContains(t, err, "unavailable")
			require.Equal(t, consumererror.IsPermanent(test.fail(errors.New(""))), consumererror.IsPermanent(err))
			_, partial := errors.AsType[xconsumererror.Profiles](err)
			require.Equal(t, test.partial, partial)
			require.EqualValues(t, test.accepted, metric("incoming_profiles", ""))
			require.EqualValues(t, test.accepted, metric("incoming_samples", ""))
		})
	}
}
