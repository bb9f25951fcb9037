// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"maps"
	"net/http"
)

// Response holds a response until it is complete.
type Response struct {
	Status int
	Body   bytes.Buffer
	header http.Header
}

// Header returns the header of the response.
func (r *Response) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}

// WriteHeader sets the status.
func (r *Response) WriteHeader(status int) {
	if r.Status == 0 {
		r.Status = status
	}
}

func (r *Response) Write(part []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.Body.Write(part)
}

// Send writes the response to a client.
func (r *Response) Send(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.Header())
	r.WriteHeader(http.StatusOK)
	w.WriteHeader(r.Status)
	_, _ = w.Write(r.Body.Bytes()) // an error is that of the client's connection
}
