// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/processor/xprocessor"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap/zaptest"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/profilesdedupprocessor/internal/metadata"
)

func nopSettings() processor.Settings { return processortest.NewNopSettings(metadata.Type) }

// newTestProcessor starts a processor with a changed default configuration.
func newTestProcessor(t testing.TB, next xconsumer.Profiles, change func(*Config)) *dedupProcessor {
	t.Helper()
	set := nopSettings()
	set.Logger = zaptest.NewLogger(t)
	return startProcessor(t, set, next, change)
}

// newCounted is newTestProcessor with a function that returns the sum of a metric, for a reason or, without one, for all.
func newCounted(t testing.TB, next xconsumer.Profiles, change func(*Config)) (*dedupProcessor, func(name, reason string) int64) {
	t.Helper()
	tel := componenttest.NewTelemetry()
	set := nopSettings()
	set.TelemetrySettings = tel.NewTelemetrySettings()
	return startProcessor(t, set, next, change), func(name, reason string) (sum int64) {
		m, err := tel.GetMetric("otelcol_processor_profiles_dedup_" + name)
		if err != nil {
			return 0
		}
		data, ok := m.Data.(metricdata.Sum[int64])
		require.True(t, ok)
		for _, point := range data.DataPoints {
			if v, _ := point.Attributes.Value("reason"); reason == "" || v.AsString() == reason {
				sum += point.Value
			}
		}
		return sum
	}
}

func startProcessor(t testing.TB, set processor.Settings, next xconsumer.Profiles, change func(*Config)) *dedupProcessor {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.RetryOnFailure.RandomizationFactor = 0
	if change != nil {
		change(cfg)
	}
	require.NoError(t, cfg.Validate())
	p, err := NewFactory().(xprocessor.Factory).CreateProfiles(t.Context(), set, cfg, next)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	return p.(*dedupProcessor)
}

func onFlush(c *Config) {
	c.Window = time.Second
	c.Acknowledge = acknowledgeOnFlush
}

// nextFunc is a next consumer.
type nextFunc func(ctx context.Context, pd pprofile.Profiles) error

func (nextFunc) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (f nextFunc) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error { return f(ctx, pd) }

// downstream is a next consumer whose responses a test decides. As exporters do, it changes payloads.
type downstream struct {
	mu       sync.Mutex
	answer   func(attempt int) error
	away     []string // services that it rejects temporarily
	attempts int
	accepted []pprofile.Profiles
	bytes    int              // of accepted, as they were received
	totals   map[string]int64 // of accepted, by service.name in the client metadata
}

func (d *downstream) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

func (d *downstream) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	service := strings.Join(client.FromContext(ctx).Metadata.Get("service.name"), ",")
	d.mu.Lock()
	d.attempts++
	attempt, answer, away := d.attempts, d.answer, slices.Contains(d.away, service)
	d.mu.Unlock()
	for _, rp := range pd.ResourceProfiles().All() {
		if v, _ := rp.Resource().Attributes().Get("service.name"); service != "" && v.Str() != service {
			return consumererror.NewPermanent(fmt.Errorf("a resource of %s in the payload of %s", v.Str(), service))
		}
	}
	bytes := sizeOf(pd)
	if _, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd); err != nil {
		return err
	}
	if away {
		return errors.New("this service is unavailable")
	}
	if answer != nil {
		if err := answer(attempt); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.accepted = append(d.accepted, pd)
	d.bytes += bytes
	if d.totals == nil {
		d.totals = map[string]int64{}
	}
	d.totals[service] += total([]pprofile.Profiles{pd})
	return nil
}

func (d *downstream) answers(answer func(attempt int) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer = answer
}

// rejects makes d unavailable for these services alone.
func (d *downstream) rejects(services ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = services
}

// totalOf is the sum of all values of a service that were accepted.
func (d *downstream) totalOf(service string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.totals[service]
}

func unavailable(int) error { return errors.New("unavailable") }

func permanently(int) error { return consumererror.NewPermanent(errors.New("never")) }

// availableFrom is unavailable before an attempt.
func availableFrom(first int) func(attempt int) error {
	return func(attempt int) error {
		if attempt < first {
			return unavailable(attempt)
		}
		return nil
	}
}

func (d *downstream) windows() []pprofile.Profiles {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]pprofile.Profiles(nil), d.accepted...)
}

// total is the sum of all values that were accepted.
func (d *downstream) total() int64 { return total(d.windows()) }

func total(all []pprofile.Profiles) (sum int64) {
	for _, pd := range all {
		for p := range sampletypes.ProfilesOf(pd) {
			for _, s := range p.Samples().All() {
				for _, v := range s.Values().All() {
					sum += v
				}
			}
		}
	}
	return sum
}

// identified is a payload of one Profile with an ID, so that its duplicates are recognized.
func identified(id byte, value int64) pprofile.Profiles {
	pd := payloadtest.Interval(1, 1, value)
	pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).SetProfileID(pprofile.ProfileID{id})
	return pd
}

// large is a payload of 2001 samples whose addresses no other n has.
func large(n int) pprofile.Profiles {
	pd := payloadtest.ManyStacks(2001, 0)
	for _, l := range pd.Dictionary().LocationTable().All() {
		l.SetAddress(l.Address() | uint64(n)<<32)
	}
	return pd
}

// second is a CPU profile of the n-th second of an hour.
func second(n int, value int64) pprofile.Profiles {
	return payloadtest.Interval(uint64(time.Hour)+uint64(n)*uint64(time.Second), uint64(time.Second)-1, value)
}

// service is a payload of one sample with this value.
func service(name string, value int64) pprofile.Profiles {
	return payloadtest.With(payloadtest.Interval(1, 1, value), "service.name", name)
}

// ofTwoServices is a payload with the value 1 of service a, and 10 of b.
func ofTwoServices(t testing.TB) pprofile.Profiles {
	t.Helper()
	return payloadtest.InOne(t, service("a", 1), service("b", 10))
}
