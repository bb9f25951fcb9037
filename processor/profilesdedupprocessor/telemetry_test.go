// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/profilesdedupprocessor/internal/metadata"
)

// Metrics are by the ID of the processor. A processor in two pipelines is two with one ID, whose
// metrics are added, also the observed ones.
func TestMetricsTellProcessorsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tel := componenttest.NewTelemetry()
		defer func() { require.NoError(t, tel.Shutdown(t.Context())) }()
		start := func(id component.ID, next *downstream) *dedupProcessor {
			set := nopSettings()
			set.ID, set.TelemetrySettings = id, tel.NewTelemetrySettings()
			return startProcessor(t, set, next, nil)
		}
		ids := []component.ID{component.NewID(metadata.Type), component.NewID(metadata.Type), component.NewIDWithName(metadata.Type, "files")}
		var nexts [3]downstream
		nexts[2].answer = func(attempt int) error {
			if attempt == 1 {
				return errors.New("unavailable")
			}
			return consumererror.NewPermanent(errors.New("never"))
		}
		var all []*dedupProcessor
		var retained []int64
		for i, id := range ids {
			p := start(id, &nexts[i])
			for n := range i + 1 {
				require.NoError(t, p.ConsumeProfiles(t.Context(), identified(byte(n+1), 5)))
			}
			require.NoError(t, p.ConsumeProfiles(t.Context(), identified(1, 5))) // a duplicate
			all = append(all, p)
			retained = append(retained, p.telemetry.retained.Load())
		}
		bad := payloadtest.Interval(1, 1, 1)
		payloadtest.Only(t, bad).Samples().At(0).SetLinkIndex(4)
		require.Error(t, all[2].ConsumeProfiles(t.Context(), bad))

		read := func() map[string]map[string]int64 {
			return profiletest.MetricsBy(t, tel, "otelcol_processor_profiles_dedup_", "processor")
		}
		by := func(plain, files int64) map[string]int64 {
			return map[string]int64{"profiles_dedup": plain, "profiles_dedup/files": files}
		}
		for range 2 { // each collection observes again
			require.Equal(t, by(retained[0]+retained[1], retained[2]), read()["retained_bytes"])
		}
		time.Sleep(time.Minute)
		before := read()["retained_bytes"]
		require.Positive(t, before["profiles_dedup"]) // ids
		require.NoError(t, all[1].Shutdown(t.Context()))
		require.Equal(t, by(all[0].telemetry.retained.Load(), before["profiles_dedup/files"]), read()["retained_bytes"])
		require.NoError(t, all[0].Shutdown(t.Context()))
		require.NoError(t, all[2].Shutdown(t.Context()))

		got := read()
		size, sent := int64(sizeOf(identified(1, 5))), int64(nexts[0].bytes+nexts[1].bytes)
		files := func(n int64) map[string]int64 { return map[string]int64{"profiles_dedup/files": n} }
		for name, want := range map[string]map[string]int64{
			"incoming_profiles": by(2+3, 4), "incoming_samples": by(2+3, 4),
			"duplicate_profiles": by(1+1, 1), "duplicate_samples": by(1+1, 1),
			"outgoing_profiles": {"profiles_dedup": 2}, "outgoing_samples": {"profiles_dedup": 2},
			"incoming_bytes": by(5*size, 4*size), "outgoing_bytes": {"profiles_dedup": sent},
			"flushes": by(2, 1), "retries": files(1), "rejected_payloads": files(1),
			"dropped_profiles": files(3), "dropped_samples": files(3),
		} {
			require.Equal(t, want, got[name], name)
		}
	})
}
