// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const (
	mediaTypeJSON     = "application/json"
	mediaTypeProtobuf = "application/x-protobuf"
)

// writeStatus answers with a google.rpc.Status, as OTLP/HTTP does: in protobuf for
// a client that says it speaks it (Accept or Content-Type), else in JSON. It
// returns the status that it wrote.
func writeStatus(w http.ResponseWriter, r *http.Request, answer *refusal) int {
	status := &spb.Status{
		Code:    int32(codeOf(answer.status)),
		Message: strings.ToValidUTF8(answer.message, "\ufffd"),
	}
	marshal, mediaType := protojson.Marshal, mediaTypeJSON
	if wantsProtobuf(r.Header) {
		marshal, mediaType = proto.Marshal, mediaTypeProtobuf
	}
	body, err := marshal(status)
	if err != nil { // a Status of two plain fields always marshals
		body = nil
	}
	writeAnswer(w, answer.status, mediaType, body, answer.retryAfter)
	return answer.status
}

func writeAnswer(w http.ResponseWriter, status int, mediaType string, body []byte, retryAfter time.Duration) {
	header := w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("X-Content-Type-Options", "nosniff")
	if retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(retryAfter/time.Second)))
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone has no use for the answer
}

func wantsProtobuf(header http.Header) bool {
	for _, name := range []string{"Accept", "Content-Type"} {
		for value := range strings.SplitSeq(strings.Join(header.Values(name), ","), ",") {
			if mediaType, _, err := mime.ParseMediaType(value); err == nil && mediaType == mediaTypeProtobuf {
				return true
			}
		}
	}
	return false
}

func codeOf(status int) codes.Code {
	switch status {
	case http.StatusBadRequest, http.StatusUnsupportedMediaType:
		return codes.InvalidArgument
	case http.StatusUnauthorized:
		return codes.Unauthenticated
	case http.StatusForbidden:
		return codes.PermissionDenied
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return codes.Unimplemented
	case http.StatusRequestTimeout:
		return codes.DeadlineExceeded
	case http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return codes.ResourceExhausted
	case http.StatusInternalServerError:
		return codes.Internal
	case http.StatusServiceUnavailable:
		return codes.Unavailable
	}
	return codes.Unknown
}
