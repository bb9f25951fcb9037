// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"net"
	"net/http"
	"net/url"
	"strings"
)

// RejectForeignPages makes a handler answer requests that a page of another site makes a browser send with reject,
// whose status is 403. A person who follows a link to a page, as isPage tells (nil for a server without pages), is
// served, and so is an origin that the CORS handler before this one allows. Pages of the same site, such as another
// port of localhost, are not foreign.
func RejectForeignPages(next http.Handler, isPage func(*http.Request) bool, reject http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		allowed := w.Header().Get("Access-Control-Allow-Origin") != ""
		if isForeign(r) && !allowed && !(isNavigation(r) && isPage != nil && isPage(r)) {
			reject(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ForeignPage is the text of a rejection.
const ForeignPage = "sent by a page of another site (Sec-Fetch-Site or Origin says so), which may neither push nor read profiles"

// isForeign reports whether a page of another site has made a browser send a request. Browsers say so in
// Sec-Fetch-Site to servers with TLS and to this computer. To others, they send Origin with all but simple reads.
func isForeign(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "cross-site"
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	from, err := url.Parse(origin) // "null" has no host
	return err != nil || !strings.EqualFold(from.Hostname(), hostname(r.Host))
}

func hostname(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// isNavigation reports whether a person opens a page in a window of the browser, which does not only fetch it ahead.
func isNavigation(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document" && r.Header.Get("Sec-Purpose") == ""
}
