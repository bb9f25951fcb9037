// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTimesAreAbsoluteOrRelativeToNow(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"now": now, "-15m": now.Add(-15 * time.Minute), "-7d": now.AddDate(0, 0, -7), "0s": now, "now-15m": now.Add(-15 * time.Minute), "now-7d": now.AddDate(0, 0, -7),
		"2026-11-22T10:00:00Z": time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC),
	} {
		got, err := ParseTime(text, now)
		assert.NoError(t, err, text)
		assert.True(t, want.Equal(got), "%s is %v", text, got)
	}
	for _, text := range []string{"", "15m", "7d", "-d", "-1.5d", "-9999999999d", "now15m", "yesterday", "1969-01-01T00:00:00Z"} {
		_, err := ParseTime(text, now)
		assert.ErrorContains(t, err, "must be a time such as", text)
	}
}
