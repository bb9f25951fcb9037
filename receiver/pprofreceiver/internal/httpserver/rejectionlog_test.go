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
		reject("malformed", 4)
		assert.Equal(t, []any{"malformed", int64(100)}, warned(), "the others, with the next one after a minute")
		l.stop()
		assert.Equal(t, []any{"malformed", int64(3)}, warned(), "at shutdown")
	})
}
