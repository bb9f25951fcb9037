// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/httpguard"
)

// policy is the Content-Security-Policy of what is no page.
const policy = "default-src 'none'; frame-ancestors 'none'"

// Protect makes a handler read-only apart from requests that mayPost accepts, which are POST, answers only requests
// for one of hosts, for this computer or for the address that the connection has here (another name may have been
// rebound to that address by an attacker), answers pages of other sites only if a person follows a link to a page,
// and sets a Content-Security-Policy.
func Protect(next http.Handler, mayPost func(*http.Request) bool, hosts ...string) http.Handler {
	next = httpguard.RejectForeignPages(next, func(r *http.Request) bool {
		return !mayPost(r) && !strings.HasPrefix(r.URL.Path, "/api/")
	}, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, httpguard.ForeignPage, http.StatusForbidden)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !isOwn(r, hosts):
			http.Error(w, "unknown host name", http.StatusMisdirectedRequest)
			return
		case r.Method == http.MethodPost && mayPost(r):
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "this page only shows profiles; push them to the pprof receiver, by default at port 4040", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// isOwn reports whether a request names one of hosts or this computer.
func isOwn(r *http.Request, hosts []string) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	if ip := net.ParseIP(host); ip != nil {
		local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		if ip.IsLoopback() || ok && ip.Equal(local.IP) {
			return true
		}
	}
	return strings.EqualFold(host, "localhost") || slices.ContainsFunc(hosts, func(own string) bool { return strings.EqualFold(own, host) })
}
