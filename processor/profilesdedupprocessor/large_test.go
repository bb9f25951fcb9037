// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// manyStacks is a payload of one Profile with n samples of value 1, each of a stack of
// its own.
func manyStacks(n int, id byte) pprofile.Profiles {
	pd := interval(1, 1, 1)
	d := pd.Dictionary()
	d.MappingTable().AppendEmpty()
	d.LocationTable().AppendEmpty()
	d.StackTable().AppendEmpty()
	p := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	p.SetProfileID(pprofile.ProfileID{id})
	p.Samples().RemoveIf(func(pprofile.Sample) bool { return true })
	p.Samples().EnsureCapacity(n)
	for i := range n {
		d.LocationTable().AppendEmpty().SetAddress(uint64(i + 1))
		d.StackTable().AppendEmpty().LocationIndices().Append(int32(i + 1))
		s := p.Samples().AppendEmpty()
		s.SetStackIndex(int32(i + 1))
		s.Values().Append(1)
	}
	return pd
}

// A payload is not lost for being large: beyond the size up to which an importer keeps
// its memory too.
func TestP8_LargePayloads(t *testing.T) {
	const n = 150_000
	t.Run("released", func(t *testing.T) {
		var im importer
		require.NoError(t, im.add(newWindow(defaultSettings()), manyStacks(n, 0)))
		im.release()
		require.Nil(t, im.identities, "n is too small for this test")
	})
	for _, test := range []struct {
		name   string
		id     byte
		change func(*Config)
	}{
		{"on_receive", 1, func(*Config) {}},
		{"without an id", 0, func(*Config) {}},
		{"no repeats", 1, func(c *Config) { c.RepeatHorizon = 0 }},
		{"no window", 1, func(c *Config) { c.Window = 0 }},
		{"on_flush", 1, onFlush},
	} {
		t.Run(test.name, func(t *testing.T) {
			var next downstream
			p := newTestProcessor(t, &next, func(c *Config) {
				test.change(c)
				c.ShutdownTimeout = time.Hour // it may take long where the machine is busy
			})
			require.NoError(t, p.ConsumeProfiles(t.Context(), manyStacks(n, test.id)))
			if test.name == "on_flush" {
				require.EqualValues(t, n, next.total(), "acknowledged before it was passed on")
			}
			require.NoError(t, p.Shutdown(t.Context()))
			require.EqualValues(t, n, next.total())
			profiletest.Account(t, fmt.Sprintf("1 payloads of %d samples", n), n, int(next.total()), 0)
		})
	}
}

// With on_flush the answer is that of the next component for large payloads too.
func TestP8_LargePayloadsRefused(t *testing.T) {
	next := downstream{answer: unavailable}
	p := newTestProcessor(t, &next, func(c *Config) { onFlush(c); c.RetryOnFailure.Enabled, c.ShutdownTimeout = false, time.Hour })
	require.Error(t, p.ConsumeProfiles(t.Context(), manyStacks(150_000, 1)))
	require.NoError(t, p.Shutdown(t.Context()))
	profiletest.Injected(t, fmt.Sprintf("%d refusals", next.attempts))
}
