// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"errors"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
)

// A panic is a bug, here or in the next consumer. It costs the payload that caused it, or the
// window that it may have left half-changed, but not the process with all other windows.

var (
	// errMergePanicked is for the sender of a payload: it would panic again.
	errMergePanicked = errors.New("profiles_dedup: panic while merging: payload rejected")
	// errWindowPanicked is for the senders of the other payloads of the window.
	errWindowPanicked = errors.New("profiles_dedup: panic while merging another payload of the window; retry")
	// errEmitPanicked is for the senders of a window that cannot be exported.
	errEmitPanicked = consumererror.NewPermanent(errors.New("profiles_dedup: panic while exporting the window"))
	// errNextPanicked is permanent: the next consumer may have taken a part of the payload, and
	// would panic again.
	errNextPanicked = consumererror.NewPermanent(errors.New("profiles_dedup: next consumer panicked"))
)

// recoverTo sets err to the given error if the caller, which defers it, panics.
func (p *dedupProcessor) recoverTo(err *error, what error) {
	if r := recover(); r != nil {
		p.logger.Error("Panic while merging or exporting", zap.Any("panic", r), zap.Stack("stack"), zap.Error(what))
		*err = what
	}
}

func (p *dedupProcessor) prepare(pd pprofile.Profiles) (payload *merge.Payload, err error) {
	defer p.recoverTo(&err, errMergePanicked)
	return merge.Prepare(pd, p.options, p.openWindow())
}

func (p *dedupProcessor) addTo(w *window, payload *merge.Payload) (err error) {
	defer p.recoverTo(&err, errMergePanicked)
	return w.merged.Add(payload)
}

// emit makes the payload of a partition. It has no Profiles if none of them has samples.
func (p *dedupProcessor) emit(part *partition) (pd pprofile.Profiles, err error) {
	defer p.recoverTo(&err, errEmitPanicked)
	return part.window.merged.Emit(part.key), nil
}

// dropOpen drops the open window, which a panic may have left half-changed. The caller holds mu.
func (p *dedupProcessor) dropOpen() {
	w := p.open
	p.open = nil
	w.timer.Stop()
	w.close()
	for _, part := range w.unsent {
		p.completeLocked(part, errWindowPanicked)
		p.reportDropped(part, reasonPanic, errWindowPanicked)
	}
}

// dropReason is the reason for dropping a payload after a permanent error.
func dropReason(err error) reason {
	if errors.Is(err, errNextPanicked) || errors.Is(err, errEmitPanicked) {
		return reasonPanic
	}
	return reasonPermanent
}
