// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// translateFolded translates the folded stacks p.Data. The reservation holds reserved bytes already.
func translateFolded(t *Prepared, p *Payload, reserved int64, reserve func(bytes int64) error) error {
	profiles, size, err := p.Folded.UnmarshalSize(p.Data, func(bytes int64) error { return reserve(reserved + bytes) })
	if err != nil {
		return err
	}
	t.profiles, t.report.Bytes = profiles, size
	scope := profiles.ResourceProfiles().At(0).ScopeProfiles().At(0)
	sampletypes.WriteOrder(scope.Scope().Attributes(), []int{0})
	if p.Folded.Period == 0 {
		return nil
	}
	profile := scope.Profiles().At(0)
	profile.SetPeriod(p.Folded.Period)
	return setValueType(profiles.Dictionary().StringTable(), profile.PeriodType(), "cpu", "nanoseconds")
}
