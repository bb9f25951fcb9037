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
	body   []byte
}

func (c *collector) do(t *testing.T, method string, query url.Values, body []byte) answer {
	t.Helper()
	request, err := http.NewRequest(method, c.url+"/v1/pprof?"+query.Encode(), bytes.NewReader(body))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	said, err := io.ReadAll(response.Body)
	require.NoError(t, errors.Join(err, response.Body.Close()))
	return answer{response.StatusCode, response.Header, said}
}

// push sends a profile that must be accepted.
func (c *collector) push(t *testing.T, service string, pprof []byte) {
	t.Helper()
	got := c.do(t, http.MethodPost, url.Values{"service.name": {service}}, pprof)
	require.Equal(t, http.StatusNoContent, got.status, "pushing %s: %s, want 204", service, got.body)
}
