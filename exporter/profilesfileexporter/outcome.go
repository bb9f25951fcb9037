// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"fmt"
	"maps"
	"slices"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// outcome collects the outcomes of the records of a payload.
type outcome struct {
	written int
	empty   int // pprofs without samples, which are counted and not written

	failures    int // records that a retry may write
	firstError  error
	failed      unwritten
	indivisible bool // the failed record is all of any payload: there are no groups and no pprofs

	rejections     int // profiles that cannot be converted, and records that cannot be written
	firstRejection error
	reasons        map[string]int // of the rejections
}

func (o *outcome) fail(g group, r record, err error) {
	o.failures++
	if o.firstError == nil {
		o.firstError = err
	}
	o.failed.add(g, r)
	o.indivisible = len(g.names) == 0 && r.converted == nil
}

func (o *outcome) reject(reason string, err error) {
	o.rejections++
	if o.firstRejection == nil {
		o.firstRejection = err
	}
	if o.reasons == nil {
		o.reasons = map[string]int{}
	}
	o.reasons[reason]++
}

// rejection returns nil if nothing was rejected.
func (o *outcome) rejection() error {
	if o.rejections > 1 {
		return fmt.Errorf("%d records or groups rejected; first error: %w", o.rejections, o.firstRejection)
	}
	return o.firstRejection
}

// err is the answer to the caller who gave pd.
func (o *outcome) err(pd pprofile.Profiles) error {
	if o.failures == 0 {
		if err := o.rejection(); err != nil {
			return consumererror.NewPermanent(err)
		}
		return nil
	}
	err := o.firstError
	if o.failures > 1 {
		err = fmt.Errorf("%d of %d records failed; first error: %w", o.failures, o.failures+o.written, err)
	}
	if o.indivisible {
		return err
	}
	// Also if pd is all that failed: after retries, it can be a part of the caller's payload.
	failed, takeErr := o.failed.of(pd, o.written+o.empty+o.rejections == 0)
	if takeErr != nil {
		return err
	}
	return xconsumererror.NewProfiles(err, failed)
}

// unwritten are Profiles of a payload by the indices of their resources. A nil map stands
// for the whole resource.
type unwritten map[int]map[position]bool

// position is a Profile's place in its ResourceProfiles.
type position struct{ scope, profile int }

// add adds the Profiles of a record.
func (u unwritten) add(g group, r record) {
	if r.converted != nil {
		part := g.part(r.converted.Resource)
		u.addProfiles(part, r.converted.Scope, r.converted.Profiles)
		return
	}
	for i, rp := range g.profiles.ResourceProfiles().All() {
		part := g.part(i)
		if part.Scopes == nil {
			u[part.Resource] = nil
			continue
		}
		for j, sp := range rp.ScopeProfiles().All() {
			all := make([]int, sp.Profiles().Len())
			for k := range all {
				all[k] = k
			}
			u.addProfiles(part, j, all)
		}
	}
}

// addProfiles adds Profiles of a scope of part.
func (u unwritten) addProfiles(part dictionary.Part, scope int, profiles []int) {
	if part.Scopes != nil {
		scope = part.Scopes[scope]
	}
	if u[part.Resource] == nil {
		u[part.Resource] = map[position]bool{}
	}
	for _, profile := range profiles {
		u[part.Resource][position{scope, profile}] = true
	}
}

// of returns the unwritten Profiles of pd: pd itself if that is all, or else a copy. Marshalling
// has made references of strings, which a caller does not expect.
func (u unwritten) of(pd pprofile.Profiles, all bool) (pprofile.Profiles, error) {
	pd, err := dictionary.ResolveStrings(pd)
	if err != nil || all {
		return pd, err
	}
	resources := slices.Sorted(maps.Keys(u))
	taken := dictionary.NewSplitter(pd).Take(resources)
	for i, resource := range resources {
		if keep := u[resource]; keep != nil {
			removeOthers(taken.ResourceProfiles().At(i).ScopeProfiles(), keep, taken.Dictionary().StringTable())
		}
	}
	return taken, nil
}

// removeOthers removes the Profiles that keep does not have, and describes the rest in the
// attributes of their scope.
func removeOthers(scopes pprofile.ScopeProfilesSlice, keep map[position]bool, texts pcommon.StringSlice) {
	scope := -1
	scopes.RemoveIf(func(sp pprofile.ScopeProfiles) bool {
		scope++
		own := sampletypes.Of(sp, func(i int32) string { return dictionary.ValidString(texts, i) })
		all, order := sampletypes.Read(sp.Scope().Attributes(), own)
		var kept []int // the part of order
		profile := -1
		sp.Profiles().RemoveIf(func(pprofile.Profile) bool {
			profile++
			if !keep[position{scope, profile}] {
				return true
			}
			if all != nil {
				kept = append(kept, order[profile])
			}
			return false
		})
		if all != nil {
			sampletypes.Write(sp.Scope().Attributes(), all, kept)
		}
		return sp.Profiles().Len() == 0
	})
}
