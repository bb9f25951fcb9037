// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
)

// Media types.
const (
	mediaTypeConnectProto = "application/proto" // of Connect's unary calls, as is JSON
	mediaTypeJSON         = "application/json"
	mediaTypeForm         = "multipart/form-data"

	mediaTypeProtobuf = "application/x-protobuf"
)

// Rejection is a response other than success.
type Rejection struct {
	status  int
	reason  string // of the metric of rejected requests
	message string
}

func (r *Rejection) Error() string { return r.message }

// malformed is the rejection of a request that is malformed.
func malformed(format string, arguments ...any) error {
	return &Rejection{status: http.StatusBadRequest, reason: "malformed", message: fmt.Sprintf(format, arguments...)}
}

// unsupported is the rejection of a request in another format.
func unsupported(format string, arguments ...any) error {
	return &Rejection{status: http.StatusUnsupportedMediaType, reason: "unsupported", message: fmt.Sprintf(format, arguments...)}
}

// rejectionOf classifies an error of reading or ingesting a request.
func rejectionOf(err error) *Rejection {
	own, isOwn := errors.AsType[*Rejection](err)
	body, isBody := errors.AsType[*http.MaxBytesError](err)
	switch outcome := ingest.Outcome(err); {
	case isOwn:
		return &Rejection{own.status, own.reason, err.Error()} // with its context
	case outcome == ingest.OutcomeRetryable:
		return &Rejection{http.StatusServiceUnavailable, reasonRetryable, "pipeline temporarily unavailable, retry: " + err.Error()}
	case outcome == ingest.OutcomeRejected:
		code := http.StatusInternalServerError
		if status.Code(err) == codes.InvalidArgument { // the profile itself is at fault
			code = http.StatusBadRequest
		}
		return &Rejection{code, "pipeline_permanent", "pipeline rejected the profile permanently: " + err.Error()}
	case outcome == ingest.OutcomePanic:
		return &Rejection{http.StatusInternalServerError, "panic", "internal error"} // the log has the panic
	case outcome == ingest.OutcomeInFlight:
		return &Rejection{http.StatusTooManyRequests, "in_flight_limit", err.Error()}
	case isBody:
		return &Rejection{http.StatusRequestEntityTooLarge, "body_size", fmt.Sprintf("body: more than the limit of %d bytes, the least of max_request_body_size and max_decompressed_size", body.Limit)}
	case outcome == ingest.OutcomeTooLarge && strings.Contains(err.Error(), ingest.DecompressedSize):
		return &Rejection{http.StatusRequestEntityTooLarge, "limit", err.Error() + "; set by max_decompressed_size"}
	case outcome == ingest.OutcomeTooLarge:
		return &Rejection{http.StatusRequestEntityTooLarge, "limit", err.Error()}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Rejection{http.StatusRequestTimeout, "timeout", "the body did not arrive in time"}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &Rejection{http.StatusServiceUnavailable, "cancelled", "cancelled: the client disconnected, the receiver stops, or it took too long"}
	}
	return &Rejection{http.StatusBadRequest, "malformed", err.Error()}
}

// mediaTypeQuery is what curl states with -d. No protocol has it.
const mediaTypeQuery = "application/x-www-form-urlencoded"

// curlHint is added if a malformed body has no line break, but the media type of curl -d.
const curlHint = "; curl -d @FILE removes line breaks from the file: use --data-binary @FILE"

// responses has the rest of the response for each status of a rejection.
var responses = map[int]struct {
	code       codes.Code   // of google.rpc.Status
	connect    connect.Code // which has a status of its own
	retryAfter string       // seconds; none if it is empty
}{
	http.StatusBadRequest:       {codes.InvalidArgument, connect.CodeInvalidArgument, ""},
	http.StatusUnauthorized:     {codes.Unauthenticated, connect.CodeUnauthenticated, ""},
	http.StatusForbidden:        {codes.PermissionDenied, connect.CodePermissionDenied, ""},
	http.StatusNotFound:         {codes.Unimplemented, connect.CodeUnimplemented, ""},
	http.StatusMethodNotAllowed: {codes.Unimplemented, connect.CodeUnimplemented, ""},
	http.StatusRequestTimeout:   {codes.DeadlineExceeded, connect.CodeDeadlineExceeded, ""},
	// Clients of Connect retry after resource_exhausted.
	http.StatusRequestEntityTooLarge: {codes.ResourceExhausted, connect.CodeInvalidArgument, ""},
	http.StatusUnsupportedMediaType:  {codes.InvalidArgument, connect.CodeUnimplemented, ""},
	http.StatusTooManyRequests:       {codes.ResourceExhausted, connect.CodeResourceExhausted, "1"},
	http.StatusInternalServerError:   {codes.Internal, connect.CodeInternal, ""},
	http.StatusServiceUnavailable:    {codes.Unavailable, connect.CodeUnavailable, "5"},
}

// connectErrors writes errors as the Connect protocol has them.
var connectErrors = connect.NewErrorWriter()

// write answers a request and returns the status that it wrote. A unary call of Connect
// gets an error of Connect. Any other request gets a google.rpc.Status, as in
// OTLP/HTTP: in protobuf if the client mentions it, otherwise in JSON.
func (r *Rejection) write(w http.ResponseWriter, request *http.Request, isConnect bool) int {
	response, known := responses[r.status]
	if !known {
		response.code, response.connect = codes.Unknown, connect.CodeUnknown
	}
	if response.retryAfter != "" {
		w.Header().Set("Retry-After", response.retryAfter)
	}
	message := strings.ToValidUTF8(r.message, "\uFFFD")
	mediaType, _, _ := mime.ParseMediaType(request.Header.Get("Content-Type"))
	if isConnect && request.Method == http.MethodPost && (mediaType == mediaTypeConnectProto || mediaType == mediaTypeJSON) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		seen := &statusSeen{ResponseWriter: w}
		_ = connectErrors.Write(seen, request, connect.NewError(response.connect, errors.New(message))) // an error means that the client disconnected
		return seen.status
	}
	if isConnect && r.status == http.StatusUnsupportedMediaType {
		w.Header().Set("Accept-Post", mediaTypeConnectProto+", "+mediaTypeJSON)
	}
	marshal, answered := protojson.Marshal, mediaTypeJSON
	mentioned := slices.Concat(request.Header.Values("Accept"), request.Header.Values("Content-Type"))
	if strings.Contains(strings.ToLower(strings.Join(mentioned, ",")), mediaTypeProtobuf) {
		marshal, answered = proto.Marshal, mediaTypeProtobuf
	}
	body, _ := marshal(&spb.Status{Code: int32(response.code), Message: message}) // a number and valid UTF-8 always marshal
	writeResponse(w, r.status, answered, body)
	return r.status
}

// statusSeen remembers the status that is written.
type statusSeen struct {
	http.ResponseWriter
	status int
}

func (w *statusSeen) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func writeResponse(w http.ResponseWriter, status int, mediaType string, body []byte) {
	header := w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client disconnected
}
