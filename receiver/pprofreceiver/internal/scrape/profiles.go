// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
)

func sampleTypeOf(pd pprofile.Profiles, p pprofile.Profile) string {
	return pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex()))
}

var mergeOptions = &merge.Options{DropZeroSamples: true}

// keepProfiles drops the Profiles of other sample types from a translated pprof of this
// memory in bytes.
func (d *deltaScrape) keepProfiles(pd pprofile.Profiles, bytes int, keep func(sampleType string) bool) (pprofile.Profiles, error) {
	selected := func(p pprofile.Profile) bool { return keep(sampleTypeOf(pd, p)) }
	return ingest.Keep(pd, bytes, mergeOptions, selected, d.held.Resize)
}
