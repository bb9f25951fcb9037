// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"
)

// Policy is the Content-Security-Policy of pprof's pages, which have scripts and styles in them.
const Policy = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'"

// notMounted open paths that a profile names, or write to the home directory.
var notMounted = []string{"/source", "/disasm", "/saveconfig", "/deleteconfig"}

// hidden takes the menu entries of these away.
const hidden = `<style>#list, #disasm, #config, #action-source, #action-source-tab { display: none !important }</style></head>`

// Handler returns pprof's web UI of p, whose links are relative. It keeps a copy of p.
func Handler(p *profile.Profile) (http.Handler, error) {
	mux := http.NewServeMux()
	err := run(p, []string{"-http=localhost:0", "-no_browser", "-flat", "-nodecount=" + strconv.Itoa(defaultNodes)}, &driver.Options{
		HTTPServer: func(args *driver.HTTPServerArgs) error {
			for path, handler := range args.Handlers {
				if path == "/" {
					path = "/{$}"
				}
				if !slices.Contains(notMounted, path) {
					mux.Handle(path, withoutMenuEntries(handler))
				}
			}
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	return mux, nil
}

// Protect makes a handler read-only, answers only requests for one of hosts, for this computer or for the
// address that the connection has here (another name may have been rebound to that address by an attacker),
// and sets Policy.
func Protect(next http.Handler, hosts ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !isOwn(r, hosts):
			http.Error(w, "unknown host name", http.StatusMisdirectedRequest)
			return
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "read-only", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Security-Policy", Policy)
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
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return true
	} else if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && ip != nil && ip.Equal(local.IP) {
		return true
	}
	return strings.EqualFold(host, "localhost") || slices.ContainsFunc(hosts, func(own string) bool { return strings.EqualFold(own, host) })
}

func withoutMenuEntries(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&pageWriter{ResponseWriter: w}, r)
	})
}

// pageWriter adds a style to the head of a page.
type pageWriter struct {
	http.ResponseWriter
	done bool
}

func (w *pageWriter) Write(p []byte) (int, error) {
	if !w.done && strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		if before, after, found := bytes.Cut(p, []byte("</head>")); found {
			w.done = true
			for _, part := range [][]byte{before, []byte(hidden), after} {
				if _, err := w.ResponseWriter.Write(part); err != nil {
					return 0, err
				}
			}
			return len(p), nil
		}
	}
	return w.ResponseWriter.Write(p)
}
