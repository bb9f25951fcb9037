// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"maps"
	"net/http"
)

// response holds a response until it is complete.
type response struct {
	status int
	body   bytes.Buffer
	header http.Header
}

// Header returns the header of the response.
func (r *response) Header() http.Header { return r.header }

// WriteHeader sets the status.
func (r *response) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *response) Write(part []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(part)
}

// send writes the response to a client.
func (r *response) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.header)
	r.WriteHeader(http.StatusOK)
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body.Bytes()) // an error is that of the client's connection
}
