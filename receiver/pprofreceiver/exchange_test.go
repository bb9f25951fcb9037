// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
)

// exchange is a request to a receiver whose max_decompressed_size is 2MiB, and its response.
type exchange struct {
	name        string
	method      string // POST
	path        string // with the query
	contentType string
	headers     []string
	body        []byte
	parts       []formPart         // instead of body and contentType
	next        xconsumer.Profiles // accepts everything

	status int
	says   string // in the message; " ... " stands for any text
	reason string // in the metric of rejected requests; one of rejectionReasons
}

// statusCodes are those of google.rpc.Status, and connectCodes those of Connect's own errors.
var (
	statusCodes = map[int]codes.Code{
		400: codes.InvalidArgument, 404: codes.Unimplemented, 405: codes.Unimplemented, 413: codes.ResourceExhausted,
		415: codes.InvalidArgument, 500: codes.Internal, 503: codes.Unavailable,
	}
	connectCodes     = map[int]string{400: "invalid_argument", 500: "internal", 501: "unimplemented", 503: "unavailable"}
	rejectionReasons = map[int][]string{
		400: {"malformed", "limit", "body_size"}, 404: {"not_found"}, 405: {"method"}, 413: {"limit", "body_size"},
		415: {"unsupported"}, 500: {"pipeline_permanent"}, 501: {"unsupported"}, 503: {"pipeline_retryable"},
	}
)

// testExchanges tests each row, with the path and the content type of defaults if it has none.
func testExchanges(t *testing.T, defaults exchange, rows []exchange) {
	t.Helper()
	for _, row := range rows {
		row.method, row.path = cmp.Or(row.method, http.MethodPost), cmp.Or(row.path, defaults.path)
		row.contentType = cmp.Or(row.contentType, defaults.contentType)
		if row.next == nil {
			row.next = consumertest.NewNop()
		}
		t.Run(row.name, row.test)
	}
}

func (e exchange) test(t *testing.T) {
	t.Parallel()
	b := startTestReceiver(t, "server: {endpoint: 127.0.0.1:0, max_decompressed_size: 2MiB}", e.next)
	body, headers := e.body, e.headers
	switch {
	case e.parts != nil:
		body, headers = form(t, e.parts...)
	case e.contentType != "":
		headers = append([]string{"Content-Type", e.contentType}, headers...)
	}
	path := strings.NewReplacer("{", "%7B", "}", "%7D").Replace(e.path)

	profiletest.Injected(t, "1 requests")
	got, err := b.send(e.method, path, bytes.NewReader(body), headers...)
	require.NoError(t, err)
	require.Equal(t, e.status, got.status, got.body)
	assert.Equal(t, map[int]string{503: "5"}[e.status], got.header.Get("Retry-After"))
	assert.Equal(t, map[int]string{405: "POST"}[e.status], got.header.Get("Allow"))
	assert.Zero(t, b.inFlight.InUse())
	assert.Equal(t, map[string]int64{strconv.Itoa(e.status): 1}, b.counts("otelcol_receiver_pprof_requests", "http.response.status_code"))
	rejections := b.counts("otelcol_receiver_pprof_rejected_requests", "reason")
	isConnect := strings.HasPrefix(path, httpserver.PushPath)
	if e.status < 300 {
		assert.Empty(t, rejections)
		if isConnect {
			assert.Equal(t, e.contentType, got.header.Get("Content-Type"))
		} else {
			assert.Empty(t, got.body)
		}
		return
	}
	assert.Empty(t, b.counts("otelcol_receiver_pprof_skipped_attachments", "attachment"))
	reasons := rejectionReasons[e.status]
	if e.reason != "" {
		reasons = []string{e.reason}
	}
	require.Len(t, rejections, 1)
	for reason, n := range rejections {
		assert.Contains(t, reasons, reason)
		assert.EqualValues(t, 1, n)
	}

	assert.Equal(t, "application/json", got.header.Get("Content-Type"))
	if isConnect && e.status != 405 && e.status != 415 {
		var status struct{ Code, Message string }
		require.NoError(t, json.Unmarshal([]byte(got.body), &status))
		assert.Equal(t, connectCodes[e.status], status.Code)
		e.checkMessage(t, status.Message)
		assert.NotContains(t, status.Message, "curl", "the body is a message that holds profiles")
		return
	}
	var status spb.Status
	require.NoError(t, protojson.Unmarshal([]byte(got.body), &status))
	assert.Equal(t, int32(statusCodes[e.status]), status.Code)
	e.checkMessage(t, status.Message)

	// A client that accepts protobuf gets the same in protobuf.
	got, err = b.send(e.method, path, bytes.NewReader(body), append(headers, "Accept", "text/html, application/x-protobuf;q=0.9")...)
	require.NoError(t, err)
	require.Equal(t, e.status, got.status)
	assert.Equal(t, "application/x-protobuf", got.header.Get("Content-Type"))
	var again spb.Status
	require.NoError(t, proto.Unmarshal([]byte(got.body), &again))
	assert.True(t, proto.Equal(&status, &again), "%v is not %v", &again, &status)
}

func (e exchange) checkMessage(t *testing.T, message string) {
	t.Helper()
	assert.NotEmpty(t, message)
	for part := range strings.SplitSeq(e.says, " ... ") {
		assert.Contains(t, message, part)
	}
	assert.NotContains(t, message, "s3cret")
}
