// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// answer is a response of the program.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (c *collector) do(t *testing.T, method string, query url.Values, body []byte) answer {
	t.Helper()
	request, err := http.NewRequest(method, c.url+"/v1/pprof?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, said}
}

// push sends a profile that must be accepted.
func (c *collector) push(t *testing.T, service string, pprof []byte) {
	t.Helper()
	got := c.do(t, http.MethodPost, url.Values{"service.name": {service}}, pprof)
	if got.status != http.StatusNoContent {
		t.Fatalf("pushing %s: %d: %s, want 204", service, got.status, got.body)
	}
}

// TestRejectedRequests checks that each response states the reason, that the next valid push is
// accepted, and that nothing of a rejected request is written.
func TestRejectedRequests(t *testing.T) {
	parallel(t)
	c := start(t, "0s", "    compression: none")
	good := pprofBytes(t, &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		Sample:     []*profile.Sample{{Value: []int64{1}}},
	})
	// A sample with the unknown location 9.
	lost := append(bytes.Clone(good), 0x12, 0x05, 0x0a, 0x01, 0x09, 0x12, 0x00)
	for _, test := range []struct {
		name   string
		method string
		body   []byte
		status int
		code   int    // of google.rpc.Status
		says   string // part of the message, in lower case
	}{
		{"text", http.MethodPost, []byte("not a profile, but a sentence"), http.StatusBadRequest, 3, ""},
		{"nothing", http.MethodPost, nil, http.StatusBadRequest, 3, ""},
		{"cut short", http.MethodPost, good[:len(good)-1], http.StatusBadRequest, 3, ""},
		{"gzip cut short", http.MethodPost, compressed(t, good)[:20], http.StatusBadRequest, 3, ""},
		{"a location that is not there", http.MethodPost, lost, http.StatusBadRequest, 3, "sample"},
		{"GET", http.MethodGet, nil, http.StatusMethodNotAllowed, 12, ""},
		{"PUT", http.MethodPut, good, http.StatusMethodNotAllowed, 12, ""},
		{"too large", http.MethodPost, make([]byte, maxRequestBody+1), http.StatusRequestEntityTooLarge, 8, ""},
		{"too large after decompression", http.MethodPost, compressed(t, make([]byte, maxDecompressed+1)), http.StatusRequestEntityTooLarge, 8, ""},
		{"gzip in gzip, too large", http.MethodPost, compressed(t, compressed(t, make([]byte, 4*maxDecompressed))), http.StatusRequestEntityTooLarge, 8, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := c.do(t, test.method, url.Values{"service.name": {"rejected"}}, test.body)
			if got.status != test.status {
				t.Fatalf("status is %d (%s), want %d", got.status, got.body, test.status)
			}
			var status struct {
				Code    int    `json:"code"`
				Message string `json:"message"`
			}
			if err := json.Unmarshal(got.body, &status); err != nil {
				t.Fatalf("the answer is no google.rpc.Status in JSON: %v: %q", err, got.body)
			}
			if status.Code != test.code || status.Message == "" || !strings.Contains(strings.ToLower(status.Message), test.says) {
				t.Errorf("the answer is %+v, want code %d and a message that says %q", status, test.code, test.says)
			}
			if allow := got.header.Get("Allow"); test.status == http.StatusMethodNotAllowed && allow != http.MethodPost {
				t.Errorf("Allow is %q, want POST", allow)
			}
		})
	}
	c.push(t, "accepted", good)
	c.stop(t)

	services := map[string]bool{}
	for _, e := range readProfiles(t, c.files) {
		services[serviceName(e)] = true
	}
	if len(services) != 1 || !services["accepted"] {
		t.Errorf("the files hold services %v, want only the accepted one", services)
	}
}

func compressed(t *testing.T, data []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// pprofBytes writes p without compression.
func pprofBytes(t *testing.T, p *profile.Profile) []byte {
	t.Helper()
	var buf bytes.Buffer
	if err := p.WriteUncompressed(&buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
