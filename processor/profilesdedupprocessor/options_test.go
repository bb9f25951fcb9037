// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// Each value is sent as a payload of its own, with client metadata. The outcome of one does not
// affect the others.
func TestSplitBy(t *testing.T) {
	payload := func() pprofile.Profiles {
		pd := pprofile.NewProfiles()
		for i, service := range []string{"a", "b", "c", ""} {
			one := identified(byte(i+1), 1<<i)
			if service != "" {
				payloadtest.With(one, "service.name", service)
			}
			if i == 0 {
				one.CopyTo(pd)
			} else {
				one.ResourceProfiles().At(0).CopyTo(pd.ResourceProfiles().AppendEmpty())
			}
		}
		return pd
	}
	for _, window := range []time.Duration{0, time.Second} {
		for _, acknowledge := range []string{acknowledgeOnReceive, acknowledgeOnFlush} {
			synctest.Test(t, func(t *testing.T) {
				var next downstream
				answer := func(ctx context.Context, pd pprofile.Profiles) error {
					switch values := client.FromContext(ctx).Metadata.Get("service.name"); {
					case slices.Contains(values, "b"):
						return consumererror.NewPermanent(errors.New("never"))
					case slices.Contains(values, "c") && next.attempts < 3:
						next.attempts++
						return errors.New("unavailable")
					}
					profiletest.RequireConforms(t, pd)
					return next.ConsumeProfiles(ctx, pd)
				}
				p := newTestProcessor(t, nextFunc(answer), func(c *Config) {
					c.Window, c.Acknowledge, c.SplitBy = window, acknowledge, []string{"service.name"}
				})
				ctx := client.NewContext(t.Context(), client.Info{Metadata: client.NewMetadata(map[string][]string{"tenant": {"t"}})})
				for range 3 {
					err := p.ConsumeProfiles(ctx, payload())
					time.Sleep(time.Minute)
					require.Equal(t, window == 0 || acknowledge == acknowledgeOnFlush, err != nil)
				}
				require.Equal(t, []int64{1, 4, 8}, []int64{next.totalOf("a"), next.totalOf("c"), next.totalOf("")}, "each once")
				if window == 0 {
					require.Equal(t, "t", next.of["a"].tenant, "the other metadata stay")
				}
				require.NoError(t, p.Shutdown(t.Context()))
			})
		}
	}
}
