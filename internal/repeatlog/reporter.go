// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package repeatlog

import (
	"errors"
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
	logger *zap.Logger
	now    func() time.Time

	mu       sync.Mutex
	host     component.Host // nil before Start
	troubles map[string]*trouble
}

// trouble is what lasts.
type trouble struct {
	count  int64 // failures since the last warning
	warned time.Time
}

// New returns a Reporter that logs.
func New(logger *zap.Logger) *Reporter {
	return &Reporter{logger: logger, now: time.Now, troubles: map[string]*trouble{}}
}

// Start makes the Reporter report the status of the component to its host, too.
func (r *Reporter) Start(host component.Host) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.host = host
}

// Failed reports a failure that a retry may mend. The message is the trouble's name, and the same each time. The
// first is logged and makes the status of the component that of a recoverable error; the next ones of the
// trouble are counted, and each minute one is logged with the count.
func (r *Reporter) Failed(message string, err error, fields ...zap.Field) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, t := r.now(), r.troubles[message]
	if t == nil {
		t = &trouble{}
		r.troubles[message] = t
		r.status(componentstatus.NewRecoverableErrorEvent(errors.New(message + ": " + err.Error())))
	}
	t.count++
	if !t.warned.IsZero() && now.Sub(t.warned) < Interval {
		return
	}
	fields = append(fields, zap.Error(err), zap.Int64("count", t.count))
	t.count, t.warned = 0, now
	r.logger.Warn(message, fields...)
}

// Over ends the trouble of this message. If there was one, it logs what works again; after the last one, the
// status of the component is OK.
func (r *Reporter) Over(message, again string, fields ...zap.Field) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.troubles) == 0 || r.troubles[message] == nil {
		return
	}
	delete(r.troubles, message)
	r.logger.Info(again, fields...)
	if len(r.troubles) == 0 {
		r.status(componentstatus.NewEvent(componentstatus.StatusOK))
	}
}

func (r *Reporter) status(event *componentstatus.Event) {
	if r.host != nil {
		componentstatus.ReportStatus(r.host, event)
	}
}
