// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestOverviewTakesMemoryByBarsNotByProfiles_V2(t *testing.T) {
	s := newSite(t)
	const hours = 7 * 24
	for hour := range hours {
		end := s.now.Add(-time.Duration(hour) * time.Hour)
		writeIndexed(t, s.dir, "checkout", end.Add(-time.Hour), end)
	}
	s.Page.settings.MaxMemory = 128 << 10 // a query has 48 KiB, less than 5 bytes for each Profile
	assert.Contains(t, s.page("/?from=-7d"), "3.00 cores")

	var instances []sent
	for i := range 400 {
		instances = append(instances, heap("checkout", string(rune('a'+i)), s.now.Add(-time.Minute), 1))
	}
	s.write(payload(t, instances...))
	w := s.get("/?from=-7d")
	assert.Equal(t, http.StatusUnprocessableEntity, w.Code)
	assert.Contains(t, w.Body.String(), "select less, by service, type or time")
	assert.Contains(t, s.page("/?from=-7d&q=cpu"), "3.00 cores")
}
