// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// FormPart is a part of a multipart form.
type FormPart struct {
	Name, File string
	Body       []byte
}

// Form returns a multipart form and its header as name, value.
func Form(tb testing.TB, parts ...FormPart) (body []byte, header []string) {
	tb.Helper()
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	for _, p := range parts {
		disposition := `form-data; name="` + p.Name + `"`
		if p.File != "" {
			disposition += `; filename="` + p.File + `"`
		}
		to, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}})
		require.NoError(tb, err)
		_, err = to.Write(p.Body)
		require.NoError(tb, err)
	}
	require.NoError(tb, w.Close())
	return buf.Bytes(), []string{"Content-Type", w.FormDataContentType()}
}

func appendField(to []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), value)
}

// RawSample returns a RawSample of Pyroscope's push.v1.
func RawSample(profile []byte) []byte {
	return appendField(appendField(nil, 1, profile), 2, []byte("734FD599-6865-419E-9475-932762D8F469"))
}

// RawSeries returns a RawProfileSeries of push.v1 with one profile, and with labels
// name, value, name, value...
func RawSeries(profile []byte, labels ...string) []byte {
	var series []byte
	for i := 0; i < len(labels); i += 2 {
		pair := appendField(appendField(nil, 1, []byte(labels[i])), 2, []byte(labels[i+1]))
		series = appendField(series, 1, pair)
	}
	return AppendRawSample(series, RawSample(profile))
}

// AppendRawSample appends a RawSample to a RawProfileSeries.
func AppendRawSample(series, sample []byte) []byte { return appendField(series, 2, sample) }

// PushRequest returns a PushRequest of push.v1.
func PushRequest(series ...[]byte) []byte {
	var request []byte
	for _, s := range series {
		request = appendField(request, 1, s)
	}
	return request
}

// Message has the fields of a protobuf message by number.
type Message map[int][][]byte

// Fields reads a message of which all fields are strings, bytes or messages; nil if it is none.
func Fields(message []byte) Message {
	fields := Message{}
	for len(message) > 0 {
		number, _, n := protowire.ConsumeTag(message)
		value, m := protowire.ConsumeBytes(message[max(0, n):])
		if n < 0 || m < 0 {
			return nil
		}
		fields[int(number)] = append(fields[int(number)], value)
		message = message[n+m:]
	}
	return fields
}

// Thief is a server that no request may reach, such as one that another server redirects to. The returned function says which headers
// of the requests it got.
func Thief(tb testing.TB) (url string, stolen func() []http.Header) {
	tb.Helper()
	var mu sync.Mutex
	var headers []http.Header
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		headers = append(headers, r.Header)
	}))
	tb.Cleanup(server.Close)
	return server.URL, func() []http.Header {
		mu.Lock()
		defer mu.Unlock()
		return headers
	}
}
