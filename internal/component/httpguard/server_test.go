// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestForeignPagesAreRejected_A6 has the headers that Chromium and Firefox send.
func TestForeignPagesAreRejected_A6(t *testing.T) {
	const site, mode, dest, origin = "Sec-Fetch-Site: ", "Sec-Fetch-Mode: ", "Sec-Fetch-Dest: ", "Origin: "
	foreign := origin + "https://evil.example"
	for _, c := range []struct {
		name, method, path string
		headers            []string
		status             int
	}{
		{"curl", http.MethodPost, "/api", nil, 200},
		{"a client that sets its own Origin", http.MethodPost, "/api", []string{origin + "http://localhost"}, 200},
		{"a form", http.MethodPost, "/api", []string{site + "cross-site", mode + "navigate", dest + "document", foreign, "Sec-Fetch-User: ?1"}, 403},
		{"a form to a page", http.MethodPost, "/", []string{site + "cross-site", mode + "navigate", dest + "document", foreign}, 403},
		{"fetch no-cors", http.MethodPost, "/api", []string{site + "cross-site", mode + "no-cors", dest + "empty", foreign}, 403},
		{"fetch", http.MethodGet, "/api", []string{site + "cross-site", mode + "cors", dest + "empty", foreign}, 403},
		{"sendBeacon", http.MethodPost, "/api", []string{site + "cross-site", mode + "no-cors", dest + "empty", foreign}, 403},
		{"an image", http.MethodGet, "/", []string{site + "cross-site", mode + "no-cors", dest + "image"}, 403},
		{"a script", http.MethodGet, "/", []string{site + "cross-site", mode + "no-cors", dest + "script"}, 403},
		{"a frame", http.MethodGet, "/", []string{site + "cross-site", mode + "navigate", dest + "iframe"}, 403},
		{"prefetching", http.MethodGet, "/", []string{site + "cross-site", mode + "navigate", dest + "document", "Sec-Purpose: prefetch;prerender"}, 403},
		{"a link to a page", http.MethodGet, "/", []string{site + "cross-site", mode + "navigate", dest + "document", "Sec-Fetch-User: ?1"}, 200},
		{"a link to the API", http.MethodGet, "/api", []string{site + "cross-site", mode + "navigate", dest + "document", "Sec-Fetch-User: ?1"}, 403},
		{"the address bar", http.MethodGet, "/api", []string{site + "none", mode + "navigate", dest + "document"}, 200},
		{"its own page", http.MethodGet, "/api", []string{site + "same-origin", mode + "cors", dest + "empty"}, 200},
		{"another port of localhost", http.MethodPost, "/api", []string{site + "same-site", mode + "cors", dest + "empty", origin + "http://localhost:3000"}, 200},
		{"a foreign page, without TLS", http.MethodPost, "/api", []string{foreign}, 403},
		{"a sandboxed frame, without TLS", http.MethodPost, "/api", []string{origin + "null"}, 403},
		{"its own page, without TLS", http.MethodPost, "/api", []string{origin + "http://localhost:4040"}, 200},
	} {
		for _, host := range []string{"localhost", "localhost:4040"} {
			r := httptest.NewRequestWithContext(t.Context(), c.method, "http://"+host+c.path, http.NoBody)
			for _, header := range c.headers {
				name, value, _ := strings.Cut(header, ": ")
				r.Header.Set(name, value)
			}
			ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			forbid := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }
			w := httptest.NewRecorder()
			RejectForeignPages(ok, func(r *http.Request) bool { return r.URL.Path == "/" }, forbid).ServeHTTP(w, r)
			assert.Equal(t, c.status, w.Code, c.name)

			withoutPages := httptest.NewRecorder()
			RejectForeignPages(ok, nil, forbid).ServeHTTP(withoutPages, r)
			if isForeign(r) {
				assert.Equal(t, http.StatusForbidden, withoutPages.Code, c.name)
			}
			allowed := httptest.NewRecorder()
			allowed.Header().Set("Access-Control-Allow-Origin", "https://evil.example") // as the CORS handler does
			RejectForeignPages(ok, nil, forbid).ServeHTTP(allowed, r)
			assert.Equal(t, http.StatusOK, allowed.Code, c.name)
		}
	}
}
