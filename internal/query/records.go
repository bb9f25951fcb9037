// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"encoding/json"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// EachPprof calls visit with a pprof of each record. The snapshots of a record are apart, by resource, and snapshot names
// their process: a resource or, in files other than OTLP, the file. It is "" of intervals. The error is a *TypesError if the
// records have several profile types, or profiles with different period types; it is ErrEmpty without any.
func (s *Source) EachPprof(ctx context.Context, sel *Selection, visit func(p *profile.Profile, snapshot string) error) error {
	var kinds []recordfile.Key
	seen := map[recordfile.Key]bool{}
	convert := func(record *archive.Record, pd pprofile.Profiles, snapshot string) error {
		result := &Result{Profiles: pd, maxMemory: s.Options.MaxMemory}
		for _, k := range result.kinds() {
			if !seen[k] {
				seen[k] = true
				kinds = append(kinds, k)
			}
		}
		if differing(kinds) != "" { // an error, when all kinds are known
			return nil
		}
		p, err := result.Pprof(ctx)
		if err != nil {
			return record.Fail(err)
		}
		return visit(p, snapshot)
	}
	err := s.Each(ctx, sel, func(record *archive.Record, pd pprofile.Profiles) error {
		if snapshots, _ := (&Result{Profiles: pd}).Snapshots(); !snapshots {
			return convert(record, pd, "")
		}
		return eachResource(pd, func(rp pprofile.ResourceProfiles) error {
			snapshot, err := json.Marshal(rp.Resource().Attributes().AsRaw()) // in the order of the keys
			if isOTLP := record.Encoding == archive.OTLPProto || record.Encoding == archive.OTLPJSON; err != nil || !isOTLP {
				snapshot = []byte(record.File) // which is of one process
			}
			return convert(record, pd, string(snapshot))
		})
	})
	switch {
	case err != nil:
		return err
	case len(kinds) == 0:
		return ErrEmpty
	}
	switch of := differing(kinds); of {
	case "":
		return nil
	case profileTypes:
		return typesError(kinds, of, "type", "service")
	default:
		return typesError(kinds, of, "service", "type")
	}
}

// eachResource calls visit while pd has one resource only, for each of them.
func eachResource(pd pprofile.Profiles, visit func(pprofile.ResourceProfiles) error) error {
	all := pprofile.NewResourceProfilesSlice()
	pd.ResourceProfiles().MoveAndAppendTo(all)
	for _, rp := range all.All() {
		pd.ResourceProfiles().RemoveIf(func(pprofile.ResourceProfiles) bool { return true })
		only := pd.ResourceProfiles().AppendEmpty()
		rp.MoveTo(only)
		if err := visit(only); err != nil {
			return err
		}
	}
	return nil
}

// Values of TypesError.Of.
const (
	profileTypes = "profile types"
	periodTypes  = "period types"
)

// differing says of which types kinds have several, so that one pprof cannot hold them.
func differing(kinds []recordfile.Key) string {
	for _, k := range kinds[min(1, len(kinds)):] {
		switch {
		case k.Type != kinds[0].Type:
			return profileTypes
		case k.PeriodType != kinds[0].PeriodType || k.PeriodUnit != kinds[0].PeriodUnit:
			return periodTypes
		}
	}
	return ""
}
