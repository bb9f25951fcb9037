// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// rejectionLog logs rejected requests as warnings, at most once a minute for each reason: the
// first one at once, the others with the next one after that minute, or at shutdown.
type rejectionLog struct {
	logger *zap.Logger

	mu      sync.Mutex
	reasons map[string]*unlogged
}

// unlogged are the rejections since the last warning of their reason.
type unlogged struct {
	count  int
	fields []zap.Field // of the last one
	warned time.Time
}

func newRejectionLog(logger *zap.Logger) *rejectionLog {
	return &rejectionLog{logger: logger, reasons: map[string]*unlogged{}}
}

// add logs a rejection now or later.
func (l *rejectionLog) add(reason string, fields ...zap.Field) {
	l.logger.Debug("Rejected request", fields...)
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.reasons[reason]
	if u == nil {
		u = &unlogged{}
		l.reasons[reason] = u
	}
	u.count, u.fields = u.count+1, fields
	if time.Since(u.warned) >= time.Minute {
		l.warn(u)
	}
}

func (l *rejectionLog) warn(u *unlogged) {
	l.logger.Warn("Rejected requests", append(u.fields, zap.Int("count", u.count))...)
	u.count, u.warned = 0, time.Now()
}

// stop logs the rest.
func (l *rejectionLog) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range l.reasons {
		if u.count > 0 {
			l.warn(u)
		}
	}
}
