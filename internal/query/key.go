// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// TypeID returns the profile type ID that Pyroscope has for the Profiles of a key, such as
// process_cpu:cpu:nanoseconds:cpu:nanoseconds: its name, sample type, unit, period type and the unit of that.
func TypeID(k *contents.Key) string {
	return strings.Join([]string{
		nameOf(k), sampletypes.PyroscopeName(k.SampleType), sampletypes.PyroscopeName(k.Unit),
		sampletypes.PyroscopeName(k.PeriodType), sampletypes.PyroscopeName(k.PeriodUnit),
	}, ":")
}

// nameOf returns the first part of the TypeID.
func nameOf(k *contents.Key) string {
	return labels.Name(sampletypes.SeriesName(k.Type, k.PeriodType, k.SampleType))
}

// KeyLabels are the labels with values that a key has, with the names that Pyroscope gives them.
var KeyLabels = []string{
	"__name__", "__period_type__", "__period_unit__", "__profile_type__", "__service_name__", "__type__", "__unit__", "service_name",
}

// KeyLabel returns the value of a label if that is one of KeyLabels. The service is that of the resource.
func KeyLabel(k *contents.Key, name string) (value string, ok bool) {
	if isServiceLabel(name) {
		return k.Service, true
	}
	switch name {
	case "__profile_type__":
		return TypeID(k), true
	case "__name__":
		return nameOf(k), true
	case "__type__":
		return sampletypes.PyroscopeName(k.SampleType), true
	case "__unit__":
		return sampletypes.PyroscopeName(k.Unit), true
	case "__period_type__":
		return sampletypes.PyroscopeName(k.PeriodType), true
	case "__period_unit__":
		return sampletypes.PyroscopeName(k.PeriodUnit), true
	default:
		return "", false
	}
}

func isServiceLabel(name string) bool {
	return name == "service_name" || name == serviceName || name == "__service_name__"
}

// IsKeyLabel reports whether KeyLabel knows a label. Others are attributes.
func IsKeyLabel(name string) bool {
	_, ok := KeyLabel(&contents.Key{}, name)
	return ok
}

func isAttribute(m *labels.Matcher) bool { return !IsKeyLabel(m.Name) }

// MatchesKey reports whether the service, the type and the other labels of a key are selected.
func (s *Selection) MatchesKey(ctx context.Context, k *contents.Key) bool {
	return s.MatchesService(k.Service) && s.matchesType(k) && !slices.ContainsFunc(s.Labels, func(m *labels.Matcher) bool {
		value, known := KeyLabel(k, m.Name)
		return known && !m.Matches(ctx, value)
	})
}

// MatchesService reports whether a service may be selected.
func (s *Selection) MatchesService(name string) bool {
	name = dictionary.ValidUTF8(name)
	return len(s.Services) == 0 || slices.ContainsFunc(s.Services, func(want string) bool { return dictionary.ValidUTF8(want) == name })
}

// matchesType reports whether Profiles with the types of a key are selected.
func (s *Selection) matchesType(k *contents.Key) bool {
	return len(s.Types) == 0 || slices.ContainsFunc(s.Types, func(want string) bool {
		return want == k.Type || want == k.SampleType || want == k.Type+":"+k.SampleType || want == TypeID(k)
	})
}

// selectsTypes reports whether a part of the sample types of a service may be selected.
func (s *Selection) selectsTypes() bool {
	return len(s.Types) > 0 || slices.ContainsFunc(s.Labels, func(m *labels.Matcher) bool { return !isAttribute(m) })
}

// mayMatchLabels reports whether Profiles of a file with these attributes may be selected.
func (s *Selection) mayMatchLabels(ctx context.Context, of *labels.Set) bool {
	return !slices.ContainsFunc(s.Labels, func(m *labels.Matcher) bool { return isAttribute(m) && !of.MayMatch(ctx, m) })
}
