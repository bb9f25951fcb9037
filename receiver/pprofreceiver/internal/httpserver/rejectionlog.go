// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// rejectionLog logs rejected requests as warnings, at most once a minute for each reason: the
// first one at once, the others with their number at the end of the minute.
type rejectionLog struct {
	logger   *zap.Logger
	interval time.Duration

	mu      sync.Mutex
	reasons map[string]*unlogged
	stopped bool
}

// unlogged are the rejections since the last warning of their reason.
type unlogged struct {
	count  int
	fields []zap.Field // of the last one
	timer  *time.Timer
}

func newRejectionLog(logger *zap.Logger) *rejectionLog {
	return &rejectionLog{logger: logger, interval: time.Minute, reasons: map[string]*unlogged{}}
}

// add logs a rejection now or later.
func (l *rejectionLog) add(reason string, fields ...zap.Field) {
	l.logger.Debug("Rejected request", fields...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	if u := l.reasons[reason]; u != nil {
		u.count++
		u.fields = fields
		return
	}
	u := &unlogged{count: 1, fields: fields}
	l.log(u)
	u.timer = time.AfterFunc(l.interval, func() { l.endOfMinute(reason) })
	l.reasons[reason] = u
}

func (l *rejectionLog) endOfMinute(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.reasons[reason]
	switch {
	case l.stopped:
	case u.count == 0:
		delete(l.reasons, reason)
	default:
		l.log(u)
		u.timer.Reset(l.interval)
	}
}

// log logs all unlogged rejections of a reason as one.
func (l *rejectionLog) log(u *unlogged) {
	l.logger.Warn("Rejected requests", append(u.fields, zap.Int("count", u.count))...)
	u.count = 0
}

// stop logs the rest.
func (l *rejectionLog) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	for _, u := range l.reasons {
		u.timer.Stop()
		if u.count > 0 {
			l.log(u)
		}
	}
}
