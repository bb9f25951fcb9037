// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const (
	retryAfterBudget   = 1 * time.Second
	retryAfterPipeline = 5 * time.Second
)

// Why a request or one of its profiles was refused, as telemetry counts it.
const (
	reasonMalformed    = "malformed"
	reasonUnsupported  = "unsupported"
	reasonBodySize     = "body_size"
	reasonLimit        = "limit"
	reasonTimeout      = "timeout"
	reasonOverBudget   = "over_budget"
	reasonRetryable    = "pipeline_retryable"
	reasonPermanent    = "pipeline_permanent"
	reasonCancelled    = "cancelled"
	reasonPanic        = "panic"
	reasonMethod       = "method"
	reasonNotFound     = "not_found"
	reasonUnauthorized = "unauthorized"
	reasonOfHTTPServer = "http_server"
)

// refusal is an answer other than success.
type refusal struct {
	status     int // of HTTP
	reason     string
	message    string
	retryAfter time.Duration // in whole seconds; 0 is no Retry-After
}

func (r *refusal) Error() string { return r.message }

func badRequest(message string) *refusal {
	return &refusal{status: http.StatusBadRequest, reason: reasonMalformed, message: message}
}

func unsupported(message string) *refusal {
	return &refusal{status: http.StatusUnsupportedMediaType, reason: reasonUnsupported, message: message}
}

// refusalOf says how an error of handling a request is answered.
func refusalOf(err error) *refusal {
	var (
		already  *refusal
		tooLarge *http.MaxBytesError
		limit    *pproftranslator.LimitError
		pipeline *ingest.PipelineError
	)
	switch {
	case errors.As(err, &already):
		answer := *already
		answer.message = err.Error() // with where it was
		return &answer
	case errors.As(err, &pipeline):
		if consumererror.IsPermanent(pipeline) {
			return &refusal{status: http.StatusInternalServerError, reason: reasonPermanent, message: "the pipeline refused the profile for good: " + err.Error()}
		}
		return &refusal{status: http.StatusServiceUnavailable, reason: reasonRetryable, message: "the pipeline cannot take the profile now, send it again: " + err.Error(), retryAfter: retryAfterPipeline}
	case errors.Is(err, ingest.ErrInFlightLimit):
		return &refusal{status: http.StatusTooManyRequests, reason: reasonOverBudget, message: err.Error(), retryAfter: retryAfterBudget}
	case errors.As(err, &tooLarge):
		return &refusal{status: http.StatusRequestEntityTooLarge, reason: reasonBodySize, message: "body: more than the limit of " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes"}
	case errors.As(err, &limit):
		return &refusal{status: http.StatusRequestEntityTooLarge, reason: reasonLimit, message: err.Error()}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &refusal{status: http.StatusRequestTimeout, reason: reasonTimeout, message: "the body did not arrive in time"}
	case errors.Is(err, context.Canceled):
		// The client is gone, or the receiver stops.
		return &refusal{status: http.StatusServiceUnavailable, reason: reasonCancelled, message: "cancelled", retryAfter: retryAfterPipeline}
	}
	return badRequest(err.Error())
}

// earlyRefusal is one that the HTTP server makes itself, before an endpoint sees
// the request.
func earlyRefusal(status int, message string) *refusal {
	reason := reasonOfHTTPServer
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		reason = reasonUnauthorized
	}
	return &refusal{status: status, reason: reason, message: message}
}
