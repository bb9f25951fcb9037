// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// TestBrowsersSignInWithAToken: the cookie stands for the token in requests of the page itself that only read.
func TestBrowsersSignInWithAToken(t *testing.T) {
	s := newSite(t)
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 2e9)))
	token := "s3cret; ü"
	inner := webui.Protect(s, IsRPC)
	server := SignIn(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "no token", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	ask := func(method, path, body string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		return w
	}
	page := []string{"Accept", "text/html", "Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	form := []string{"Content-Type", "application/x-www-form-urlencoded", "Origin", "http://localhost", "Sec-Fetch-Site", "same-origin"}
	entered := func(token, next string) string { return url.Values{"token": {token}, "next": {next}}.Encode() }

	w := ask(http.MethodGet, "/?service=checkout", "", page...)
	assert.Equal(t, http.StatusUnauthorized, w.Code)
	assert.Contains(t, w.Body.String(), `<input type="hidden" name="next" value="/?service=checkout">`)
	assert.NotContains(t, w.Header().Get("Content-Security-Policy"), "unsafe")
	assert.Equal(t, "no token\n", ask(http.MethodGet, "/api/services", "").Body.String(), "a script gets the answer itself")
	_, style, _ := strings.Cut(w.Body.String(), `href="/static/`)
	style, _, _ = strings.Cut(style, `"`)
	assert.Equal(t, http.StatusOK, ask(http.MethodGet, "/static/"+style, "").Code)

	w = ask(http.MethodPost, "/sign-in", entered("wrong", "/"), form...)
	assert.Equal(t, http.StatusUnauthorized, w.Code)
	assert.Contains(t, w.Body.String(), "The token is not accepted.")
	assert.Empty(t, w.Header().Get("Set-Cookie"))
	for _, foreign := range [][]string{
		{"Origin", "http://localhost:3000", "Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, {"Origin", "null"}, {"Origin", "http://localhost:3000"}, nil,
	} {
		for _, path := range []string{"/sign-in", "/sign-out"} {
			assert.Equal(t, http.StatusForbidden, ask(http.MethodPost, path, entered(token, "/"), append([]string{"Content-Type", form[1]}, foreign...)...).Code, foreign)
		}
	}
	assert.Equal(t, http.StatusBadRequest, ask(http.MethodPost, "/sign-in", entered(strings.Repeat("x", maxForm), "/"), form...).Code)
	for next, want := range map[string]string{"/?service=checkout": "/?service=checkout", "//evil.example/": "/", "https://evil.example": "/", "/\\evil.example": "/", "javascript:alert(1)": "/", "/sign-out": "/"} {
		w = ask(http.MethodPost, "/sign-in", entered(" "+token+" ", next), form...)
		require.Equal(t, http.StatusSeeOther, w.Code, w.Body)
		assert.Equal(t, want, w.Header().Get("Location"))
	}
	cookie := w.Header().Get("Set-Cookie")
	assert.Contains(t, cookie, "; Path=/; HttpOnly; SameSite=Strict")
	cookie, _, _ = strings.Cut(cookie, ";")

	w = ask(http.MethodGet, "/?service=checkout", "", append(page, "Cookie", cookie)...)
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Contains(t, w.Body.String(), `action="/sign-out"`)
	assert.Contains(t, w.Body.String(), "0.20 cores")
	assert.Equal(t, http.StatusOK, ask(http.MethodGet, "/api/services", "", "Cookie", cookie, "Sec-Fetch-Site", "same-origin").Code)
	for what, w := range map[string]*httptest.ResponseRecorder{
		"another site": ask(http.MethodGet, "/api/services", "", "Cookie", cookie, "Sec-Fetch-Site", "cross-site"),
		"another port": ask(http.MethodGet, "/api/services", "", "Cookie", cookie, "Sec-Fetch-Site", "same-site"),
		"a query":      ask(http.MethodPost, "/querier.v1.QuerierService/ProfileTypes", "{}", "Cookie", cookie, "Sec-Fetch-Site", "same-origin", "Content-Type", "application/json"),
		"other cookie": ask(http.MethodGet, "/api/services", "", "Cookie", tokenCookie+"=x"),
	} {
		assert.Equal(t, http.StatusUnauthorized, w.Code, what)
	}
	w = ask(http.MethodGet, "/", "", append(page, "Cookie", cookie, "Sec-Fetch-Site", "cross-site")...)
	assert.Contains(t, w.Body.String(), `If you are signed in, <a href="/">open the page</a>`)
	w = ask(http.MethodGet, "/", "", append(page, "Cookie", tokenCookie+"=eA")...)
	assert.Contains(t, w.Body.String(), "The token is not accepted any longer.")

	w = ask(http.MethodPost, "/sign-out", "", append(form, "Cookie", cookie)...)
	assert.Equal(t, http.StatusSeeOther, w.Code)
	assert.Contains(t, w.Header().Get("Set-Cookie"), "Max-Age=0")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://attacker.example/sign-in", nil)
	w = httptest.NewRecorder()
	server.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Body)
	assert.Equal(t, http.StatusMisdirectedRequest, w.Code, string(body))
}
