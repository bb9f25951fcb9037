// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// answer is a response of the program.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request with headers name, value, name, value... It is safe for concurrent use.
func ask(method, url string, body []byte, headers ...string) (answer, error) {
	request, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	said, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(said)}, errors.Join(err, response.Body.Close())
}

func get(t *testing.T, url string) answer {
	t.Helper()
	got, err := ask(http.MethodGet, url, nil)
	require.NoError(t, err)
	return got
}

// push sends a profile that must be accepted.
func (c *collector) push(t *testing.T, service string, pprof []byte) {
	t.Helper()
	c.pushWith(t, url.Values{"service.name": {service}}, pprof)
}

// pushWith is push with parameters.
func (c *collector) pushWith(t *testing.T, query url.Values, pprof []byte) {
	t.Helper()
	got, err := ask(http.MethodPost, c.url+"/v1/pprof?"+query.Encode(), pprof)
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, got.status, "pushing %v: %s, want 204", query, got.body)
}
