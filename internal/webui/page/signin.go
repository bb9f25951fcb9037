// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

const (
	// tokenCookie has the token that a person has entered, in base64.
	tokenCookie = "otelcol_profiles_token" // #nosec G101 -- a name
	signInPath  = "/sign-in"
	signOutPath = "/sign-out"
	// maxForm bounds the body of the form, in bytes.
	maxForm = 16 << 10
)

// SignIn lets a browser sign in to a server whose clients send a bearer token: a form asks for the token, which a cookie keeps
// until the browser ends. No script reads the cookie, no other site makes the browser send it, and it stands for the token in
// GET and HEAD requests of the page itself or of a person only. hosts are those of webui.Protect.
func SignIn(next http.Handler, hosts ...string) http.Handler {
	s := &signIn{next: next}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+signInPath, func(w http.ResponseWriter, r *http.Request) {
		s.form(w, r, http.StatusOK, localPath(r.URL.Query().Get("next")), "")
	})
	mux.HandleFunc("POST "+signInPath, s.enter)
	mux.HandleFunc("POST "+signOutPath, s.leave)
	mux.Handle("GET /static/{hash}/{name}", handler(static))
	own := webui.Protect(mux, func(r *http.Request) bool { return r.URL.Path == signInPath || r.URL.Path == signOutPath }, hosts...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == signInPath || r.URL.Path == signOutPath || strings.HasPrefix(r.URL.Path, "/static/") {
			own.ServeHTTP(w, r)
			return
		}
		s.serve(w, r)
	})
}

type signIn struct{ next http.Handler }

// signedIn is the key of a context of a request whose token is that of the cookie.
type signedIn struct{}

func isSignedIn(r *http.Request) bool { return r.Context().Value(signedIn{}) != nil }

// serve serves a request with the token of the cookie, and shows the form in place of a page that needs another one.
func (s *signIn) serve(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(tokenCookie); err == nil && r.Header.Get("Authorization") == "" && mayUseCookie(r) {
		if token, err := base64.RawURLEncoding.DecodeString(cookie.Value); err == nil {
			r = authorized(r.WithContext(context.WithValue(r.Context(), signedIn{}, true)), string(token))
		}
	}
	isPage := r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.HasPrefix(r.URL.Path, "/api/")
	if !isPage {
		s.next.ServeHTTP(w, r)
		return
	}
	guarded := &unauthorizedWriter{ResponseWriter: w}
	s.next.ServeHTTP(guarded, r)
	if guarded.unauthorized {
		problem := ""
		if isSignedIn(r) {
			problem = "The token is not accepted any longer."
		}
		w.Header().Del("Content-Length")
		w.Header().Del("WWW-Authenticate") // the browser would ask for a password
		s.form(w, r, http.StatusUnauthorized, localPath(r.URL.RequestURI()), problem)
	}
}

// mayUseCookie reports whether a request is one that only reads, and of the page itself or of a person. A browser that does not say
// whose it is sends the cookie to its own site only.
func mayUseCookie(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	return reads && slices.Contains([]string{"", "same-origin", "none"}, r.Header.Get("Sec-Fetch-Site"))
}

// authorized returns a request with a token.
func authorized(r *http.Request, token string) *http.Request {
	with := r.Clone(r.Context())
	with.Header.Set("Authorization", "Bearer "+token)
	return with
}

// enter keeps the token of the form in a cookie, if the server accepts it.
func (s *signIn) enter(w http.ResponseWriter, r *http.Request) {
	if !isOwnForm(r) {
		http.Error(w, "the form is of another site", http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	token, next := strings.TrimSpace(r.PostForm.Get("token")), localPath(r.PostForm.Get("next"))
	// A page that does not exist: the answer says whether the token is accepted, and costs no query.
	probe := r.Clone(r.Context())
	probe.Method, probe.URL, probe.Body, probe.ContentLength = http.MethodGet, &url.URL{Path: signInPath + "/probe"}, http.NoBody, 0
	probe.RequestURI, probe.Header = probe.URL.Path, http.Header{}
	answer := &response{header: http.Header{}}
	s.next.ServeHTTP(answer, authorized(probe, token))
	if answer.status != http.StatusNotFound {
		s.form(w, r, http.StatusUnauthorized, next, "The token is not accepted.")
		return
	}
	setToken(w, r, base64.RawURLEncoding.EncodeToString([]byte(token)), 0)
	http.Redirect(w, r, next, http.StatusSeeOther) // #nosec G710 -- localPath has checked it
}

// leave removes the cookie.
func (s *signIn) leave(w http.ResponseWriter, r *http.Request) {
	if !isOwnForm(r) {
		http.Error(w, "the form is of another site", http.StatusForbidden)
		return
	}
	setToken(w, r, "", -1)
	http.Redirect(w, r, signInPath, http.StatusSeeOther)
}

func setToken(w http.ResponseWriter, r *http.Request, value string, maxAge int) {
	// #nosec G124 -- without TLS, a browser would not send a cookie that is Secure
	http.SetCookie(w, &http.Cookie{
		Name: tokenCookie, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
}

// isOwnForm reports whether a form was sent by a page of this server. Another port of the same host is another one.
func isOwnForm(r *http.Request) bool {
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Host == r.Host && slices.Contains([]string{"", "same-origin"}, r.Header.Get("Sec-Fetch-Site"))
}

// localPath returns the address of a page of this server, or that of the first page.
func localPath(address string) string {
	to, err := url.Parse(address)
	if err != nil || to.IsAbs() || to.Host != "" || !strings.HasPrefix(to.Path, "/") || strings.HasPrefix(address, "//") || strings.Contains(address, `\`) ||
		to.Path == signInPath || to.Path == signOutPath {
		return "/"
	}
	return to.RequestURI()
}

// form writes the page with the form.
func (s *signIn) form(w http.ResponseWriter, r *http.Request, status int, next, problem string) {
	writePage(w, status, "signin", map[string]any{"Next": next, "Problem": problem, "Followed": r.Header.Get("Sec-Fetch-Site") == "cross-site"})
}

// unauthorizedWriter drops a response that says that a token is missing or wrong.
type unauthorizedWriter struct {
	http.ResponseWriter
	unauthorized bool
}

// Unwrap is for http.ResponseController.
func (w *unauthorizedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader keeps the status 401 back.
func (w *unauthorizedWriter) WriteHeader(status int) {
	if w.unauthorized = status == http.StatusUnauthorized; !w.unauthorized {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *unauthorizedWriter) Write(data []byte) (int, error) {
	if w.unauthorized {
		return len(data), nil
	}
	return w.ResponseWriter.Write(data)
}
