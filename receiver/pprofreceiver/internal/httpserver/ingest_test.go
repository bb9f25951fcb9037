// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func TestFailedDecompressionReleasesItsBytes_R2(t *testing.T) {
	s := newTestServer(t, nil)
	r := s.newRequest(httptest.NewRequest(http.MethodPost, "/", nil))
	bomb, bad := Profile{Name: "bomb"}, Profile{Name: "bad"}
	bomb.Data = profiletest.Gzip(t, make([]byte, 8<<20))
	bad.Data = profiletest.Gzip(t, []byte("some text that is cut off"))[:20]
	payloads, _, failures, err := r.decompress([]Profile{bomb, bad})
	require.NoError(t, err)
	assert.Empty(t, payloads)
	assert.Len(t, failures, 2)
	assert.Zero(t, r.reservation.Held())
	profiletest.Injected(t, "1 bombs, 1 torn profiles")
}
