// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/conformance"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// routed is a next consumer that records the client metadata of payloads.
type routed struct {
	reject   func(value string) error
	accepted map[string]int64 // by metadata
	others   map[string]string
	attempts map[string]int
}

func (d *routed) consume(ctx context.Context, pd pprofile.Profiles) error {
	metadata := client.FromContext(ctx).Metadata
	values := strings.Join(metadata.Get("service.name"), ",")
	d.attempts[values]++
	if err := d.reject(values); err != nil {
		return err
	}
	for _, rp := range pd.ResourceProfiles().All() {
		name, ok := rp.Resource().Attributes().Get("Service.Name")
		if ok != (len(metadata.Get("service.name")) == 1) || name != (pcommon.Value{}) && name.Str() != values {
			return consumererror.NewPermanent(errors.New("a resource of another value"))
		}
	}
	if violations := conformance.Check(pd).Violations(); len(violations) > 0 {
		return consumererror.NewPermanent(errors.New(violations[0].String()))
	}
	d.others[values] = strings.Join(metadata.Get("tenant"), ",")
	eachProfile(pd, func(p pprofile.Profile) { d.accepted[values] += p.Samples().At(0).Values().At(0) })
	return nil
}

func newRouted() *routed {
	return &routed{
		reject: func(string) error { return nil }, accepted: map[string]int64{},
		others: map[string]string{}, attempts: map[string]int{},
	}
}

// Each value is sent as a payload of its own, with client metadata. The outcome of one does not
// affect the others.
func TestSplitBy(t *testing.T) {
	payload := func() pprofile.Profiles {
		pd := pprofile.NewProfiles()
		for i, service := range []string{"a", "b", "c", ""} {
			one := identified(byte(i+1), 1<<i)
			if service != "" {
				payloadtest.With(one, "Service.Name", service)
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
				next := newRouted()
				next.reject = func(value string) error {
					switch {
					case value == "b":
						return consumererror.NewPermanent(errors.New("never"))
					case value == "c" && next.attempts[value] < 3:
						return errors.New("unavailable")
					}
					return nil
				}
				p := newTestProcessor(t, nextFunc(next.consume), func(c *Config) {
					c.Window, c.Acknowledge, c.SplitBy = window, acknowledge, []string{"Service.Name"}
				})
				ctx := client.NewContext(t.Context(), client.Info{Metadata: client.NewMetadata(map[string][]string{"tenant": {"t"}})})
				for range 3 {
					err := p.ConsumeProfiles(ctx, payload())
					time.Sleep(time.Minute)
					require.Equal(t, window == 0 || acknowledge == acknowledgeOnFlush, err != nil)
				}
				require.Equal(t, map[string]int64{"a": 1, "c": 4, "": 8}, next.accepted, "each once")
				if window == 0 {
					require.Equal(t, "t", next.others["a"], "the other metadata stay")
				}
				require.NoError(t, p.Shutdown(t.Context()))
			})
		}
	}
}
