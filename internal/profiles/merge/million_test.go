// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestAddToLargeWindowIsCheap_P7: what a small profile costs does not depend on what
// the window holds. What is held against a bound is what a window
// allocates, which does not vary with the machine.
func TestAddToLargeWindowIsCheap_P7(t *testing.T) {
	adds := profiletest.Rounds(t, 200, 5000)
	million, next := millionLocations(t)
	small := make([]pprofile.Profiles, adds)
	for i := range small {
		small[i] = next()
	}
	addAll := func(w *Window) (p99 time.Duration, allocated uint64) {
		times := make([]time.Duration, adds)
		allocated = profiletest.AllocatedBy(func() {
			for i, pd := range small {
				begin := time.Now()
				require.NoError(t, add(w, pd))
				times[i] = time.Since(begin)
			}
		})
		slices.Sort(times)
		return times[adds*99/100], allocated / uint64(adds)
	}
	ofMillion, allocatedMillion := addAll(million)
	ofEmpty, allocatedEmpty := addAll(NewWindow(defaultOptions()))
	profiletest.Injected(t, fmt.Sprintf("10^6 locations; p99 %v (empty window: %v)", ofMillion.Round(time.Microsecond), ofEmpty.Round(time.Microsecond)))

	// A table that grows is copied: at most once a doubling, in all of the adds.
	assert.LessOrEqual(t, allocatedMillion*uint64(adds), allocatedEmpty*uint64(adds)+2*uint64(million.Size()))
}
