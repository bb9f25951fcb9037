// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package section

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestRepeatGoesOnAfterAPanic_A11: of the scraper, and of the profiler of the Collector itself.
func TestRepeatGoesOnAfterAPanic_A11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		ctx, cancel := context.WithTimeout(t.Context(), 95*time.Second)
		defer cancel()
		calls := 0
		Repeat(ctx, 10*time.Second, zap.New(core), func(context.Context) {
			if calls++; calls%2 == 1 {
				panic("out of the blue")
			}
		})
		assert.Equal(t, 10, calls)
		assert.Equal(t, 5, logs.FilterMessage("Panic in the background; next attempt after the collection interval").Len())
	})
}
