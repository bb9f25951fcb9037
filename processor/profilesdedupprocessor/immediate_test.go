// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
)

// A caller retries if one of several consumers has asked for it.
func TestPermanentErrorOfOneConsumerIsRetryable(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.Window = 0 },
		func(c *Config) {
			c.Window, c.Acknowledge, c.RetryOnFailure.Enabled = time.Second, acknowledgeOnFlush, false
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			never := consumererror.NewPermanent(errors.New("never"))
			next := &downstream{}
			next.answers(func(int) error { return errors.Join(never, errors.New("later")) })
			p := newTestProcessor(t, next, change)
			err := p.ConsumeProfiles(t.Context(), identified(1, 5))
			require.ErrorContains(t, err, "later")
			require.False(t, consumererror.IsPermanent(err))
			next.answers(func(int) error { return never })
			require.True(t, consumererror.IsPermanent(p.ConsumeProfiles(t.Context(), identified(1, 5))))
			require.NoError(t, p.Shutdown(t.Context()))
		})
	}
}
