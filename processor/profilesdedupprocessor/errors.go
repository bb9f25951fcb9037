// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"errors"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
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
	errMergePanicked = consumererror.NewPermanent(errors.New("profiles_dedup: panic while merging: payload rejected"))
	// errWindowPanicked is for the senders of the other payloads of the window.
	errWindowPanicked = errors.New("profiles_dedup: panic while merging another payload of the window; retry")
	// errExportPanicked is permanent: the next consumer may have taken a part of the payload, and
	// would panic again.
	errExportPanicked = consumererror.NewPermanent(errors.New("profiles_dedup: panic while exporting the window"))
)

// recoverTo sets err to the given error if the caller, which defers it, panics.
func (p *dedupProcessor) recoverTo(err *error, what error) {
	if r := recover(); r != nil {
		p.logger.Error("Panic while merging or exporting", zap.Any("panic", r), zap.Stack("stack"), zap.Error(what))
		*err = what
	}
}

// rejections are the errors with which a payload is not accepted, by the sentinel that they wrap, and whether the payload
// itself is the cause. All others are those of an invalid payload.
var rejections = []struct {
	err       error
	reason    reason
	ofPayload bool
}{
	{errStopping, reasonShutdown, false},
	{errMemoryLimit, reasonMemory, false},
	{errMergePanicked, reasonPanic, false},
	{errTooLarge, reasonTooLarge, true},
	{merge.ErrTypes, reasonTypes, true},
	{merge.ErrNoValues, reasonNoValues, true},
}

// reject counts a payload that is not accepted, and returns the error for its sender.
func (p *dedupProcessor) reject(err error) error {
	why, ofPayload := reasonInvalid, true
	for _, r := range rejections {
		if errors.Is(err, r.err) {
			why, ofPayload = r.reason, r.ofPayload
		}
	}
	p.telemetry.add(p.telemetry.ProcessorProfilesDedupRejectedPayloads, 1, why)
	if ofPayload {
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
	if a == nil || b != nil && ingest.IsPermanent(a) {
		return b
	}
	return a
}

// forCallers returns err, the outcome of a partition, for callers whose payloads are only parts of it: it
// does not say which part failed, as that is not a part of their payloads.
func forCallers(err error) error {
	if err == nil {
		return nil
	}
	message := errors.New(err.Error())
	if ingest.IsPermanent(err) {
		return consumererror.NewPermanent(message)
	}
	return message
}
