// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
)

const (
	connectPath = "/push.v1.PusherService/Push"

	mediaTypeConnectProto = "application/proto"
)

// connectPush handles the unary call Push of Pyroscope's push.v1.PusherService, in
// the Connect protocol (https://connectrpc.com/docs/protocol). The messages are
// read here, where they lie in the body, and not by the types that Pyroscope
// generates: those copy every profile, and make an object for each entry of two
// bytes before anything could count them.
func (s *server) connectPush(w http.ResponseWriter, r *http.Request) error {
	mediaType := connectMediaType(r.Header)
	if mediaType == "" {
		w.Header().Set("Accept-Post", mediaTypeConnectProto+", "+mediaTypeJSON)
		return unsupported(fmt.Sprintf("Content-Type: want %s or %s, unary calls of the Connect protocol", mediaTypeConnectProto, mediaTypeJSON))
	}
	if version := r.Header.Get("Connect-Protocol-Version"); version != "" && version != "1" {
		return badRequest("Connect-Protocol-Version: want 1")
	}
	held := s.budget.Reserve()
	defer held.Release()
	read, success := readPushRequest, []byte(nil)
	if mediaType == mediaTypeJSON {
		read, success = readPushRequestJSON, []byte("{}")
	}
	message, err := s.readMessage(r, held)
	if err != nil {
		return err
	}
	if mediaType == mediaTypeJSON { // what base64 stands for is copied
		held.Keep()
		if err := held.Resize(r.Context(), memoryOfJSON(message)); err != nil {
			return err
		}
	}
	all, err := read(message)
	if err != nil {
		return fmt.Errorf("body: %w", err)
	}
	attachments, err := s.attachmentsOf(all)
	if err != nil {
		return fmt.Errorf("body: %w", err)
	}
	if err := s.acceptAll(r.Context(), connectPath, attachments, held); err != nil {
		return err
	}
	writeAnswer(w, http.StatusOK, mediaType, success, 0)
	return nil
}

func (s *server) attachmentsOf(all []pushedSeries) ([]attachment, error) {
	var attachments []attachment
	for i, pushed := range all {
		series, err := readSeries(fmt.Sprintf("series[%d].labels", i), pushed.labels)
		if err != nil {
			return nil, err
		}
		kind := kindOfPyroscope(series.name)
		arrival := ingest.Payload{
			Resource:        s.resourceOf(series.resource),
			ScopeAttributes: series.scope,
			ProfileType:     kind,
			Temporality:     ingest.GoTemporality(kind, series.deltas),
		}
		for j, sample := range pushed.samples {
			attachments = append(attachments, attachment{name: fmt.Sprintf("series[%d].samples[%d]", i, j), body: sample, payload: arrival})
		}
	}
	return attachments, nil
}

// kindOfPyroscope is the kind of profile that Pyroscope has another name for.
func kindOfPyroscope(name string) string {
	switch name {
	case "process_cpu":
		return ingest.ProfileTypeCPU
	case "memory":
		return ingest.ProfileTypeHeap
	case "goroutines":
		return ingest.ProfileTypeGoroutine
	}
	return name
}

// connectMediaType is the type of a body that a unary call of Connect may have, or
// "" of any other.
func connectMediaType(header http.Header) string {
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err == nil && (mediaType == mediaTypeConnectProto || mediaType == mediaTypeJSON) {
		return mediaType
	}
	return ""
}

// connectCode is a code of Connect and the status that goes with it.
type connectCode struct {
	name   string
	status int // of HTTP
}

// connectCodeOf has too large and over the budget under one code, as Connect does.
func connectCodeOf(status int) connectCode {
	switch status {
	case http.StatusBadRequest:
		return connectCode{"invalid_argument", http.StatusBadRequest}
	case http.StatusUnauthorized:
		return connectCode{"unauthenticated", http.StatusUnauthorized}
	case http.StatusForbidden:
		return connectCode{"permission_denied", http.StatusForbidden}
	case http.StatusRequestTimeout:
		return connectCode{"deadline_exceeded", http.StatusGatewayTimeout}
	case http.StatusRequestEntityTooLarge, http.StatusTooManyRequests:
		return connectCode{"resource_exhausted", http.StatusTooManyRequests}
	case http.StatusUnsupportedMediaType:
		return connectCode{"unimplemented", http.StatusNotImplemented}
	case http.StatusInternalServerError:
		return connectCode{"internal", http.StatusInternalServerError}
	case http.StatusServiceUnavailable:
		return connectCode{"unavailable", http.StatusServiceUnavailable}
	}
	return connectCode{"unknown", http.StatusInternalServerError}
}

// writeConnectError answers with an error of Connect, and to what is no unary call
// of Connect as the other endpoints do. It returns the status that it wrote.
func writeConnectError(w http.ResponseWriter, r *http.Request, answer *refusal) int {
	if r.Method != http.MethodPost || connectMediaType(r.Header) == "" {
		return writeStatus(w, r, answer)
	}
	code := connectCodeOf(answer.status)
	body, err := json.Marshal(struct {
		Code    string `json:"code"`
		Message string `json:"message,omitempty"`
	}{code.name, strings.ToValidUTF8(answer.message, "\ufffd")})
	if err != nil { // two strings always marshal
		body = nil
	}
	writeAnswer(w, code.status, mediaTypeJSON, body, answer.retryAfter)
	return code.status
}

var errTruncatedMessage = errors.New("not a PushRequest: the message ends inside a field")
