// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// Names of parts count towards the limit, including those of skipped parts.
func TestFormReservesNamesOfParts_R3(t *testing.T) {
	const parts, length = 500, 15 << 10
	var all []profiletest.FormPart
	for i := range parts {
		all = append(all, profiletest.FormPart{Name: strings.Repeat("n", length), File: strings.Repeat("f", length), Body: []byte(fmt.Sprint(i))})
	}
	body, header := profiletest.Form(t, all...)
	s := newTestServer(t, nil)
	s.settings.InFlight = ingest.NewInFlight(256 << 20)
	post := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	post.Header.Set(header[0], header[1])
	r := s.newRequest(post)
	read, err := r.Form()
	require.NoError(t, err)
	require.Len(t, read, parts)
	assert.GreaterOrEqual(t, s.settings.InFlight.InUse(), int64(parts*2*length))
	profiletest.Injected(t, fmt.Sprintf("%d parts with long names", parts))
}
