// Copyright The OpenTelemetry Authors
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

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const (
	retryAfterBudget   = 1 * time.Second
	retryAfterPipeline = 5 * time.Second
)

// refusal is an answer other than success.
type refusal struct {
	status     int // of HTTP
	message    string
	retryAfter time.Duration // in whole seconds; 0 is no Retry-After
}

func (r *refusal) Error() string { return strconv.Itoa(r.status) + ": " + r.message }

func badRequest(message string) *refusal {
	return &refusal{status: http.StatusBadRequest, message: message}
}

// refusalOf says how an error of handling a request is answered.
func refusalOf(err error) *refusal {
	var (
		already  *refusal
		tooLarge *http.MaxBytesError
		limit    *pproftranslator.LimitError
		pipeline *pipelineError
	)
	switch {
	case errors.As(err, &already):
		return already
	case errors.As(err, &pipeline):
		if consumererror.IsPermanent(pipeline) {
			return &refusal{status: http.StatusInternalServerError, message: "the pipeline refused the profile for good: " + err.Error()}
		}
		return &refusal{status: http.StatusServiceUnavailable, message: "the pipeline cannot take the profile now, send it again: " + err.Error(), retryAfter: retryAfterPipeline}
	case errors.Is(err, errOverBudget):
		return &refusal{status: http.StatusTooManyRequests, message: err.Error(), retryAfter: retryAfterBudget}
	case errors.As(err, &tooLarge):
		return &refusal{status: http.StatusRequestEntityTooLarge, message: "body: more than the limit of " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes"}
	case errors.As(err, &limit):
		return &refusal{status: http.StatusRequestEntityTooLarge, message: err.Error()}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &refusal{status: http.StatusRequestTimeout, message: "the body did not arrive in time"}
	case errors.Is(err, context.Canceled):
		// The client is gone, or the receiver stops.
		return &refusal{status: http.StatusServiceUnavailable, message: "cancelled", retryAfter: retryAfterPipeline}
	}
	return badRequest(err.Error())
}
