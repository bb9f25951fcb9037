// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// A payload that is larger than the share of a window is accepted, alone in its window; one that
// is larger than memory_limit is rejected permanently. No client retries either indefinitely.
func TestLargestPayload_P5(t *testing.T) {
	large := payloadtest.ManyStacks(20_000, 0)
	needed := maxRetained * sizeOf(large)
	for _, test := range []struct {
		name     string
		limit    int
		accepted bool
		windows  int
	}{
		{"with others within the share of a window", 3 * (needed + 20_000*sampleSize + 1<<20), true, 1},
		{"alone, larger than the share of a window", 3*needed - 3, true, 2},
		{"alone, as large as memory_limit", needed, true, 2},
		{"larger than memory_limit", needed - 1, false, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var next downstream
			p, metric := newCounted(t, &next, func(c *Config) { c.MemoryLimit = config.Size(test.limit) })
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.Interval(1, 1, 1)))
			want := int64(1)
			err := p.ConsumeProfiles(t.Context(), large)
			if test.accepted {
				require.NoError(t, err, test.name)
				want += 20_000
			} else {
				require.True(t, consumererror.IsPermanent(err), test.name)
				require.ErrorContains(t, err, fmt.Sprintf("payload exceeds memory_limit (%v): it has %d bytes", config.Size(test.limit), sizeOf(large)))
				require.EqualValues(t, 1, metric("rejected_payloads", string(reasonTooLarge)))
			}
			require.NoError(t, p.Shutdown(t.Context()))
			require.Equal(t, want, next.total(), test.name)
			require.Len(t, next.windows(), test.windows, test.name)
			profiletest.Account(t, test.name, int(want), int(next.total()), 0)
		})
	}
}

// A small payload that needs much memory is rejected before it takes it.
func TestExpandingPayloadsAreRejected_P5(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, expand := range map[string]func(rp pprofile.ResourceProfiles){
		"each slot has the attributes of its scope": func(rp pprofile.ResourceProfiles) {
			scope := rp.ScopeProfiles().At(0)
			scope.Scope().Attributes().PutStr("long", long)
			for i := range 1000 {
				more := scope.Profiles().AppendEmpty()
				scope.Profiles().At(0).CopyTo(more)
				more.SetTime(pcommon.Timestamp(i+1) * pcommon.Timestamp(time.Hour))
			}
		},
		"attributes are references to one long string, which the receiver has resolved": func(rp pprofile.ResourceProfiles) {
			for i := range 1000 {
				rp.Resource().Attributes().PutStr(fmt.Sprint(i), long)
			}
		},
	} {
		var next downstream
		p := newTestProcessor(t, &next, func(c *Config) { c.MemoryLimit = 64 * config.MiB })
		pd := payloadtest.Interval(uint64(time.Hour), 1, 1)
		expand(pd.ResourceProfiles().At(0))
		var err error
		allocated := profiletest.AllocatedBy(func() { err = p.ConsumeProfiles(t.Context(), pd) })
		require.ErrorIs(t, err, errTooLarge, name)
		require.Less(t, allocated, uint64(16<<20), name)
		require.NoError(t, p.Shutdown(t.Context()))
		require.Zero(t, next.attempts)
	}
}

// Types that no program has would grow everything that lists them.
func TestSampleTypesOfAServiceAreLimited_P16(t *testing.T) {
	types := func(service string, first, n int) pprofile.Profiles {
		pd := payloadtest.Interval(1, 1, 1)
		rp := pd.ResourceProfiles().At(0)
		rp.Resource().Attributes().PutStr("service.name", service)
		profiles := rp.ScopeProfiles().At(0).Profiles()
		for i := range n {
			p := profiles.At(0)
			if i > 0 {
				p = profiles.AppendEmpty()
				profiles.At(0).CopyTo(p)
			}
			pd.Dictionary().StringTable().Append(fmt.Sprint("type_", first+i))
			p.SampleType().SetTypeStrindex(int32(pd.Dictionary().StringTable().Len() - 1))
		}
		return pd
	}
	for _, window := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var next downstream
			p, metric := newCounted(t, &next, func(c *Config) { c.Window = window })
			accepted := 0
			for _, test := range []struct {
				service   string
				first, n  int
				ofWindow0 bool // accepted without a window
				ofWindow  bool
			}{
				{"many", 0, 1025, false, false},
				{"many", 0, 1000, true, true},
				{"many", 1000, 25, true, false},
				{"other", 1000, 25, true, true},
				{"many", 1000, 24, true, true},
				{"many", 0, 1024, true, true},
				{"many", 1024, 1, true, false},
			} {
				err := p.ConsumeProfiles(t.Context(), types(test.service, test.first, test.n))
				if window == 0 && test.ofWindow0 || window > 0 && test.ofWindow {
					require.NoError(t, err)
					accepted += test.n
					continue
				}
				require.True(t, consumererror.IsPermanent(err))
				require.ErrorContains(t, err, `the service "many" would have more than 1024 in one window; one of them is "type_1024"`)
			}
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.InOne(t, types("many", 0, 1000), types("many", 0, 1000))), "each counts once")
			accepted += 2000
			rejected := 1
			if window > 0 {
				rejected = 3
			}
			require.EqualValues(t, rejected, metric("rejected_payloads", string(reasonTypes)))
			require.NoError(t, p.Shutdown(t.Context()))
			require.EqualValues(t, accepted, next.total())
			profiletest.Account(t, fmt.Sprintf("window %v", window), accepted, int(next.total()), 0)
		})
	}
}
