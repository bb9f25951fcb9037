// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/consumer/consumertest"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
)

func (b *testReceiver) connect(body []byte, headers ...string) answer {
	b.t.Helper()
	return b.post(httpserver.PushPath, body, append([]string{"Content-Type", "application/proto"}, headers...)...)
}

// Errors have Connect's codes and form.
func TestConnectCodes_R10(t *testing.T) {
	good := profiletest.Pprof(t, samplePprof("/bin/app", 3))
	request := profiletest.PushRequest(profiletest.RawSeries(good, "service_name", "checkout"))
	stripped := curlData(profiletest.Gzip(t, good))
	zeros := make([]byte, 3<<20)
	testExchanges(t, exchange{path: httpserver.PushPath, contentType: "application/proto"}, []exchange{
		{name: "good", body: request, status: 200},
		{name: "good, with the version", body: request, headers: []string{"Connect-Protocol-Version", "1", "Connect-Timeout-Ms", "1000"}, status: 200},
		{name: "gzipped", body: profiletest.Gzip(t, request), headers: []string{"Content-Encoding", "gzip"}, status: 200},
		{name: "in zstd", body: profiletest.Zstd(t, request), headers: []string{"Content-Encoding", "zstd"}, status: 200},
		{name: "no series", body: []byte{0x1a, 0x00}, status: 200},
		{name: "unknown fields", body: append(protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 1), request...), status: 200},

		{name: "empty", status: 400, says: "empty"},
		{name: "cut off", body: request[:len(request)-1], status: 400, says: "ends inside a field"},
		{name: "not gzip as said", body: request, headers: []string{"Content-Encoding", "gzip"}, status: 400, says: "not gzip"},
		{name: "a profile as the body", body: good, status: 400, says: "body: series[0]: not a PushRequest: field 1 has the wire type 0: must be 2"},
		{name: "a number of series", body: []byte{0x08, 0x01}, status: 400, says: "body: not a PushRequest: field 1 has the wire type 0: must be 2"},
		{name: "no profile in it", body: profiletest.PushRequest(profiletest.RawSeries(nil)), status: 400, says: "series[0].samples[0]: empty"},
		{name: "a label twice", body: profiletest.PushRequest(profiletest.RawSeries(good, "a", "1", "a", "2")), status: 400, says: `series[0].labels: duplicate "a"`},
		{name: "JSON cut off", contentType: "application/json", body: []byte(`{"series":[`), status: 400, says: "JSON"},
		{name: "JSON with a profile stripped of NULs", contentType: "application/json", body: fmt.Appendf(nil, `{"series":[{"samples":[{"rawProfile":%q}]}]}`, base64.StdEncoding.EncodeToString(stripped)), status: 400, says: "samples[0]: gzip: the header is malformed"},
		{name: "JSON with a number", contentType: "application/json", body: []byte(`{"series":7}`), status: 400, says: `JSON: wrong type at byte 11, of field "series"`},
		{name: "JSON with bad base64", contentType: "application/json", body: []byte(`{"series":[{},{"samples":[{"rawProfile":"AA!="}]}]}`), status: 400, says: "not a PushRequest in JSON: illegal base64 data at input byte 2"},
		{name: "JSON with a long label", contentType: "application/json", body: []byte(`{"series":[{"labels":[{"name":"` + strings.Repeat("a", 500_000) + `"}]}]}`), status: 400, says: "size in bytes of a name: 500000"},
		{name: "another version", body: request, headers: []string{"Connect-Protocol-Version", "2"}, status: 400, says: "must be 1"},
		{name: "half a JFR", body: profiletest.PushRequest(profiletest.RawSeries([]byte("FLR\x00abc"))), status: 400, says: "jfr: chunk 1, byte 0"},
		{name: "Content-Encoding br", body: request, headers: []string{"Content-Encoding", "br"}, status: 501, says: "br"},

		{name: "too large", body: zeros, status: 400, says: "limit"},
		{name: "gzipped, too large", body: profiletest.Gzip(t, zeros), headers: []string{"Content-Encoding", "gzip"}, status: 400, says: "limit"},
		{name: "a bomb in it", body: profiletest.PushRequest(profiletest.RawSeries(profiletest.Gzip(t, zeros))), status: 400, says: "series[0].samples[0]"},
		{name: "many series", body: bytes.Repeat([]byte{0x0a, 0x00}, httpserver.MaxEntries+1), status: 400, says: "series: 257, more than the limit of 256"},
		{name: "many samples", body: profiletest.PushRequest(bytes.Repeat([]byte{0x12, 0x00}, httpserver.MaxEntries+1)), status: 400, says: "samples: 257, more than"},
		{name: "many labels", body: profiletest.PushRequest(bytes.Repeat([]byte{0x0a, 0x00}, httpserver.MaxEntries+1)), status: 400, says: "labels: 257"},
		{name: "JSON of many series", contentType: "application/json", body: []byte(`{"series":[` + strings.Repeat("{},", httpserver.MaxEntries) + `{}]}`), status: 400, says: "series"},
		{name: "JSON of many nothings", contentType: "application/json", body: []byte(`{"series":[` + strings.Repeat("null,", 64<<10) + `{}]}`), status: 400, says: "commas"},

		{name: "retryable", body: request, next: consumertest.NewErr(errors.New("is away")), status: 503, says: "is away"},

		{name: "GET", method: http.MethodGet, status: 405},
		{name: "gRPC", contentType: "application/grpc", body: request, status: 415, says: "application/proto"},
		{name: "a stream", contentType: "application/connect+proto", body: request, status: 415},
		{name: "no content type", contentType: " ", body: request, status: 415},
	})
}
