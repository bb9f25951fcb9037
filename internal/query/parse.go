// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
)

// Errors of the functions below say what a text must be. The caller adds the name of the flag or
// parameter.

// MaxTime is the latest time that ParseTime accepts. Those of profiles reach further: see TimeOf.
var MaxTime = time.Date(2200, time.December, 31, 23, 59, 59, 999_999_999, time.UTC)

// ParseTime parses a time in RFC 3339, or relative to now, such as -15m or -7d, or now itself.
func ParseTime(text string, now time.Time) (time.Time, error) {
	if text == "now" {
		return now, nil
	}
	relative := strings.TrimPrefix(text, "now") // as Grafana writes it
	if days, isDays := strings.CutSuffix(relative, "d"); isDays {
		if n, err := strconv.Atoi(days); err == nil && n > -1e5 {
			relative = strconv.Itoa(24*n) + "h"
		}
	}
	if ago, err := time.ParseDuration(relative); err == nil && ago <= 0 {
		return now.Add(ago), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Before(time.Unix(0, 0)) || t.After(MaxTime) {
		return time.Time{}, errors.New("must be a time such as 2026-11-22T10:00:00Z, or relative to now, such as -15m or -7d")
	}
	return t, nil
}

// TimeOf returns the time of a profile, in nanoseconds since the epoch. They reach to the year 2554, those of
// time.Unix(0, n) to 2262.
func TimeOf(nanoseconds uint64) time.Time {
	return time.Unix(int64(nanoseconds/1e9), int64(nanoseconds%1e9)).UTC()
}

// nanosecondsOf is the inverse of TimeOf for the bounds of a range. No profile is before the epoch.
func nanosecondsOf(bound time.Time) uint64 { return uint64(max(0, bound.UnixNano())) }

// Set adds a restriction from the text of a flag or parameter: trace_id, span_id, profile_id or label.
func (s *Selection) Set(key, text string) error {
	switch key {
	case "trace_id":
		var id pcommon.TraceID
		err := parseID(text, id[:])
		s.TraceIDs = []pcommon.TraceID{id}
		return err
	case "span_id":
		var id pcommon.SpanID
		err := parseID(text, id[:])
		s.SpanIDs = []pcommon.SpanID{id}
		return err
	case "profile_id":
		return s.AddProfileID(text)
	default:
		return s.addLabels(text)
	}
}

// AddProfileID adds the ID of a Profile, as 32 hex digits or a UUID.
func (s *Selection) AddProfileID(text string) error {
	var id pprofile.ProfileID
	digits := text
	if parts := strings.Split(text, "-"); len(parts) == 5 && len(parts[0]) == 8 && len(parts[1])+len(parts[2])+len(parts[3]) == 3*4 {
		digits = strings.Join(parts, "")
	}
	if err := parseID(digits, id[:]); err != nil {
		return errors.New("must be 32 hex digits that are not all 0, or a UUID")
	}
	s.ProfileIDs = append(s.ProfileIDs, id)
	return nil
}

// parseID parses the ID of a trace, a span or a Profile, which has len(id) bytes.
func parseID(text string, id []byte) error {
	decoded, err := hex.DecodeString(text)
	if err != nil || len(decoded) != len(id) || strings.Trim(text, "0") == "" {
		return fmt.Errorf("must be %d hex digits that are not all 0", 2*len(id))
	}
	copy(id, decoded)
	return nil
}

// addLabels adds KEY=VALUE, or a selector in braces.
func (s *Selection) addLabels(text string) error {
	if strings.HasPrefix(text, "{") {
		parsed, err := labels.ParseSelector(text)
		if s.Labels = append(s.Labels, parsed...); err != nil {
			return err
		}
		return labels.Check(s.Labels)
	}
	key, value, found := strings.Cut(text, "=")
	if !found || key == "" {
		return errors.New(`must be KEY=VALUE, or a selector such as {pod=~"a|b"}`)
	}
	s.Labels = append(s.Labels, labels.Equal(key, value))
	return labels.Check(s.Labels)
}
