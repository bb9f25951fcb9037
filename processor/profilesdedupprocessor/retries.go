// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"time"

	"github.com/cenkalti/backoff/v7"
	"go.opentelemetry.io/collector/config/configretry"
)

// retries are the waits between the attempts to deliver one window.
type retries struct {
	cfg     configretry.BackOffConfig
	waits   backoff.ExponentialBackOff
	started time.Time
}

func newRetries(cfg configretry.BackOffConfig) *retries {
	return &retries{
		cfg: cfg,
		waits: backoff.ExponentialBackOff{
			InitialInterval:     cfg.InitialInterval,
			RandomizationFactor: cfg.RandomizationFactor,
			Multiplier:          cfg.Multiplier,
			MaxInterval:         cfg.MaxInterval,
		},
		started: time.Now(),
	}
}

// next returns how long to wait before the next attempt, and whether there is to
// be one.
func (r *retries) next() (time.Duration, bool) {
	if !r.cfg.Enabled || r.cfg.MaxElapsedTime > 0 && time.Since(r.started) >= r.cfg.MaxElapsedTime {
		return 0, false
	}
	wait := r.waits.NextBackOff()
	return wait, wait != backoff.Stop
}
