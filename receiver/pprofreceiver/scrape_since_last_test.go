// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// A target that computes deltas sends each of them once. A lost response is in no later delta, and no
// later interval has its time. If a request does not reach the target, nothing is lost.
func TestTargetsThatTellOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		next := newSink(t)
		attempts := 0
		b := newTestReceiver(t, targetsYAML("profiles: [delta_mutex]", "a"), consumer(t, func(ctx context.Context, pd pprofile.Profiles) error {
			if attempts++; attempts == 5 {
				return errors.New("not now")
			}
			return next.ConsumeProfiles(ctx, pd)
		}))
		target := &counters{t: t}
		defer serveOver(t, b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch scrape := 1 + int(time.Since(begin)/time.Minute); scrape {
			case 3:
				w.WriteHeader(http.StatusInternalServerError)
			case 6:
				panic(http.ErrAbortHandler)
			default:
				target.ServeHTTP(w, r)
			}
		}))()
		b.runFor(9 * time.Minute)
		var durations []time.Duration
		for _, a := range arrivals(t, next.AllProfiles()) {
			if a.sampleType == "alloc_objects" {
				durations = append(durations, a.duration)
			}
		}
		// Of the scrapes 2, 4, 5, 7 and 9; 8 is rejected.
		assert.Equal(t, []time.Duration{time.Minute, time.Minute, time.Minute, 2 * time.Minute, time.Minute}, durations)
		assert.Equal(t, map[string]int{"success": 6, "status": 1, "unreachable": 1, "rejected": 1}, b.outcomes(""))
	})
}
