// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/profilesdedupprocessor/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
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
	attempts int
	accepted []pprofile.Profiles
	bytes    int // of accepted, as they were received
}

func (d *downstream) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

func (d *downstream) ConsumeProfiles(_ context.Context, pd pprofile.Profiles) error {
	d.mu.Lock()
	d.attempts++
	attempt, answer := d.attempts, d.answer
	d.mu.Unlock()
	bytes := sizeOf(pd)
	if _, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd); err != nil {
		return err
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
	return nil
}

func (d *downstream) answers(answer func(attempt int) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer = answer
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
func (d *downstream) total() (sum int64) {
	for _, pd := range d.windows() {
		eachProfile(pd, func(p pprofile.Profile) {
			for _, s := range p.Samples().All() {
				for _, v := range s.Values().All() {
					sum += v
				}
			}
		})
	}
	return sum
}

// times are the starts and sums of the Profiles that were accepted.
func (d *downstream) times() map[time.Duration]int64 {
	sums := map[time.Duration]int64{}
	for _, pd := range d.windows() {
		eachProfile(pd, func(p pprofile.Profile) {
			sums[time.Duration(p.Time())-time.Hour] += p.Samples().At(0).Values().At(0)
		})
	}
	return sums
}

// identified is a payload of one Profile with an ID, so that its duplicates are recognized.
func identified(id byte, value int64) pprofile.Profiles {
	pd := payloadtest.Interval(1, 1, value)
	pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).SetProfileID(pprofile.ProfileID{id})
	return pd
}

// large is a payload of 2001 samples whose addresses no other n has.
func large(n int) pprofile.Profiles {
	pd := payloadtest.Interval(1, 1, 1)
	d := pd.Dictionary()
	d.StackTable().AppendEmpty()
	d.LocationTable().AppendEmpty()
	samples := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples()
	for i := range 2000 {
		d.LocationTable().AppendEmpty().SetAddress(uint64(n)<<32 | uint64(i))
		d.StackTable().AppendEmpty().LocationIndices().Append(int32(d.LocationTable().Len() - 1))
		s := samples.AppendEmpty()
		s.SetStackIndex(int32(d.StackTable().Len() - 1))
		s.Values().Append(1)
	}
	return pd
}

// second is a CPU profile of the n-th second of an hour.
func second(n int, value int64) pprofile.Profiles {
	return payloadtest.Interval(uint64(time.Hour)+uint64(n)*uint64(time.Second), uint64(time.Second)-1, value)
}

// ofService is a payload of one sample with this value.
func ofService(name string, value int64) pprofile.Profiles {
	return payloadtest.With(payloadtest.Interval(1, 1, value), "service.name", name)
}

// ofTwoServices is a payload with the value 1 of service a, and 10 of b.
func ofTwoServices(t testing.TB) pprofile.Profiles {
	t.Helper()
	return payloadtest.InOne(t, ofService("a", 1), ofService("b", 10))
}

// ofServices is pd with n resources instead of one, each of a service of its own.
func ofServices(pd pprofile.Profiles, n int) pprofile.Profiles {
	payloadtest.With(pd, "service.name", "0")
	for i := 1; i < n; i++ {
		to := pd.ResourceProfiles().AppendEmpty()
		pd.ResourceProfiles().At(0).CopyTo(to)
		to.Resource().Attributes().PutStr("service.name", fmt.Sprint(i))
	}
	return pd
}

// numberProfiles gives the Profiles of pd the IDs 1, 2 and so on.
func numberProfiles(pd pprofile.Profiles) {
	id := byte(0)
	eachProfile(pd, func(p pprofile.Profile) { id++; p.SetProfileID(pprofile.ProfileID{id}) })
}

func marshal(t testing.TB, pd pprofile.Profiles) []byte {
	t.Helper()
	mutable := pprofile.NewProfiles()
	pd.CopyTo(mutable)
	b, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(mutable)
	require.NoError(t, err)
	return b
}

func unmarshalPprof(t testing.TB, data []byte) pprofile.Profiles {
	t.Helper()
	pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(data)
	require.NoError(t, err)
	return pd
}

func eachProfile(pd pprofile.Profiles, f func(pprofile.Profile)) {
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				f(p)
			}
		}
	}
}
