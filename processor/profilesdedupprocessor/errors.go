// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"errors"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/partialerror"
)

var (
	errMemoryLimit = errors.New("profiles_dedup: memory_limit reached: earlier windows are not exported yet; retry later")
	errTooLarge    = errors.New("profiles_dedup: payload exceeds memory_limit")
	errStopping    = errors.New("profiles_dedup: shutting down")
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

// dropReason is the reason for dropping a payload after a permanent error.
func dropReason(err error) reason {
	if errors.Is(err, errNextPanicked) || errors.Is(err, errEmitPanicked) {
		return reasonPanic
	}
	return reasonPermanent
}

// reject counts a payload that is not accepted, and returns the error for its sender.
func (p *dedupProcessor) reject(err error) error {
	switch {
	case errors.Is(err, errStopping):
		p.telemetry.rejected(reasonShutdown)
	case errors.Is(err, errMemoryLimit):
		p.telemetry.rejected(reasonMemory)
	case errors.Is(err, errTooLarge):
		p.telemetry.rejected(reasonTooLarge)
		return consumererror.NewPermanent(&clientError{err})
	case errors.Is(err, errMergePanicked):
		p.telemetry.rejected(reasonPanic)
		return consumererror.NewPermanent(err)
	default:
		p.telemetry.rejected(reasonInvalid)
		return consumererror.NewPermanent(&clientError{err})
	}
	return err
}

// clientError is an error of a payload itself. To other permanent errors the otlp receiver responds that
// the server failed.
type clientError struct{ error }

func (e *clientError) Unwrap() error { return e.error }

// GRPCStatus is the response of the otlp receiver: 400 over HTTP.
func (e *clientError) GRPCStatus() *status.Status {
	return status.New(codes.InvalidArgument, e.Error())
}

// preferRetryable returns one of two results for the same caller: an error before nil, and a
// retryable error before a permanent one.
func preferRetryable(a, b error) error {
	if a == nil || b != nil && partialerror.IsPermanent(a) {
		return b
	}
	return a
}

// withoutPart hides the failed part of err, if there is one, from the caller of ConsumeProfiles: it
// is not the failed part of the caller's payload.
func withoutPart(err error) error {
	if err == nil {
		return nil
	}
	return errorWithoutPart{err}
}

type errorWithoutPart struct{ error }

func (e errorWithoutPart) Is(target error) bool { return errors.Is(e.error, target) }

func (e errorWithoutPart) As(target any) bool {
	if _, partial := target.(*xconsumererror.Profiles); partial {
		return false
	}
	return errors.As(e.error, target)
}
