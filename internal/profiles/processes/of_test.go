// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFit(t *testing.T) {
	values := func(sum int64, values ...int64) (fitted []int64) {
		var rows []Row
		for _, v := range values {
			rows = append(rows, Row{Value: v})
		}
		Fit(rows, sum)
		for _, row := range rows {
			fitted = append(fitted, row.Value)
		}
		return fitted
	}
	assert.Empty(t, values(5))
	assert.Equal(t, []int64{3, 4}, values(7, 3, 4), "they add up")
	assert.Equal(t, []int64{9}, values(9, 5))
	assert.Equal(t, []int64{2, 1}, values(3, 20, 10))
	assert.Equal(t, []int64{7, 0}, values(7, 0, 0))
	assert.Equal(t, []int64{4, -1}, values(3, 5, -1))
	assert.Equal(t, []int64{math.MaxInt64, 1}, values(5, math.MaxInt64, 1), "a saturated sum tells nothing")
}

// A time that is 0 is unknown, and does not extend that of others.
func TestUnknownTimesDoNotCount(t *testing.T) {
	known := Single(7, 100, 60, false)
	unknown := Single(7, 0, 60, false)
	for _, joined := range [][]Row{Join([]Row{known}, []Row{unknown}), Join([]Row{unknown}, []Row{known})} {
		assert.Equal(t, []Row{{Hash: 7, Start: 100, End: 160, Covered: 60, Profiles: 2, Processes: 1}}, joined)
	}
	assert.Equal(t, uint64(math.MaxUint64), Single(7, math.MaxUint64-5, 60, false).End)
	assert.Zero(t, Single(7, 100, 60, true).Covered, "a snapshot")
}
