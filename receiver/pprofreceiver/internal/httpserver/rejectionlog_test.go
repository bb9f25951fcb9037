// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestRejectionsAreWarnedOfOnceAMinuteAndReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		l := newRejectionLog(zap.New(core))
		warned := func() (counts []any) {
			for _, entry := range logs.FilterMessage("Rejected requests").TakeAll() {
				counts = append(counts, entry.ContextMap()["reason"], entry.ContextMap()["count"])
			}
			logs.TakeAll()
			return counts
		}
		reject := func(reason string, n int) {
			for range n {
				l.add(reason, zap.String("reason", reason))
			}
		}
		reject("malformed", 100)
		reject("limit", 1)
		assert.Equal(t, []any{"malformed", int64(1), "limit", int64(1)}, warned(), "at once")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []any{"malformed", int64(99)}, warned(), "the others, after a minute")
		time.Sleep(time.Hour)
		assert.Empty(t, warned())
		reject("malformed", 3)
		assert.Equal(t, []any{"malformed", int64(1)}, warned())
		l.stop()
		assert.Equal(t, []any{"malformed", int64(2)}, warned(), "at shutdown")
		reject("late", 1)
		l.stop()
		assert.Empty(t, warned())
	})
}
