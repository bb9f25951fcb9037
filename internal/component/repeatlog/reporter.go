// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package repeatlog

import (
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"
)

// Interval is the shortest time between two warnings of one trouble.
const Interval = time.Minute

// Reporter reports the trouble of one component. It is safe for concurrent use.
type Reporter struct {
	logger   *zap.Logger // names the caller of Over
	warnings *zap.Logger // names the caller of Failed and Warn
	now      func() time.Time

	mu       sync.Mutex
	host     component.Host // nil before Start
	troubles map[string]*trouble
	lasting  int // troubles that last
}

// trouble is what Failed and Warn were told of one message.
type trouble struct {
	lasts  bool
	count  int64     // failures since the last warning
	warned time.Time // the time of the last warning
	told   bool      // there was a warning since the trouble began
}

// New returns a Reporter that logs.
func New(logger *zap.Logger) *Reporter {
	return &Reporter{
		logger: logger.WithOptions(zap.AddCallerSkip(1)), warnings: logger.WithOptions(zap.AddCallerSkip(2)),
		now: time.Now, troubles: map[string]*trouble{},
	}
}

// Start makes the Reporter report the status of the component to its host, too.
func (r *Reporter) Start(host component.Host) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.host = host
}

// Failed reports a failure that a retry may mend. The message is the name of the trouble, and is the same each time.
// The first failure is logged, and makes the status of the component that of a recoverable error. The next ones are
// counted, and one a minute is logged with the count, also if the trouble comes and goes.
func (r *Reporter) Failed(message string, err error, fields ...zap.Field) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.warn(message, err, fields)
	if !t.lasts {
		t.lasts = true
		r.lasting++
		r.status(componentstatus.NewRecoverableErrorEvent(fmt.Errorf("%s: %w", message, err)))
	}
}

// Warn is Failed without the status, for a failure whose end nobody tells.
func (r *Reporter) Warn(message string, err error, fields ...zap.Field) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warn(message, err, fields)
}

func (r *Reporter) warn(message string, err error, fields []zap.Field) *trouble {
	now, t := r.now(), r.troubles[message]
	if t == nil {
		t = &trouble{}
		r.troubles[message] = t
	}
	t.count++
	if t.warned.IsZero() || now.Sub(t.warned) >= Interval {
		r.warnings.Warn(message, append(fields, zap.Error(err), zap.Int64("count", t.count))...)
		t.count, t.warned, t.told = 0, now, true
	}
	return t
}

// Over ends the trouble of a message, if it lasts: it logs what works again, and after the last trouble the status of
// the component is OK.
func (r *Reporter) Over(message, again string, fields ...zap.Field) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.troubles[message]
	if t == nil || !t.lasts {
		return
	}
	if t.told {
		r.logger.Info(again, fields...)
	}
	t.lasts, t.told = false, false
	if r.lasting--; r.lasting == 0 {
		r.status(componentstatus.NewEvent(componentstatus.StatusOK))
	}
}

func (r *Reporter) status(event *componentstatus.Event) {
	if r.host != nil {
		componentstatus.ReportStatus(r.host, event)
	}
}
