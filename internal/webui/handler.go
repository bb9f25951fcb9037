// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	_ "embed"
	"html/template"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"
)

// policy is the Content-Security-Policy of pprof's pages, which have scripts and styles in them.
const policy = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'"

// Options say how Handler shows a profile.
type Options struct {
	// Title is that of each page, unless it is empty.
	Title string
	// Banner is put at the top of each page.
	Banner template.HTML
}

// notMounted open paths that a profile names, or write to the home directory.
var notMounted = []string{"/source", "/disasm", "/saveconfig", "/deleteconfig"}

// additions hide the menu entries of these, open the other menus by keyboard, and keep the search on narrow screens.
//
//go:embed additions.html
var additions string

// Handler returns pprof's web UI of p, whose links are relative. It keeps a copy of p.
func Handler(p *profile.Profile, options Options) (http.Handler, error) {
	mux, own := http.NewServeMux(), p.Copy()
	err := run(p, []string{"-http=localhost:0", "-no_browser", "-flat", "-nodecount=" + strconv.Itoa(defaultNodes)}, &driver.Options{
		HTTPServer: func(args *driver.HTTPServerArgs) error {
			args.Handlers["/graph"], args.Handlers["/flamegraph"] = graph(own), flamegraph(own, options)
			for path, handler := range args.Handlers {
				if path == "/" {
					path = "/{$}"
				}
				if !slices.Contains(notMounted, path) {
					mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
						if err := checkPatterns(r.URL.Query()); err != nil {
							http.Error(w, err.Error(), http.StatusBadRequest)
							return
						}
						handler.ServeHTTP(&pageWriter{ResponseWriter: w, Options: options}, r)
					})
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

// Protect makes a handler read-only apart from requests that mayPost accepts, which are POST, answers only requests for one of hosts, for this computer or for the
// address that the connection has here (another name may have been rebound to that address by an attacker),
// and sets a Content-Security-Policy.
func Protect(next http.Handler, mayPost func(*http.Request) bool, hosts ...string) http.Handler {
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

// pageWriter changes the title of a page, and adds additions to its head and the banner to its body.
type pageWriter struct {
	http.ResponseWriter
	Options
	done bool
}

// Write gets a whole page at once.
func (w *pageWriter) Write(page []byte) (int, error) {
	head, body, found := bytes.Cut(page, []byte("<body>"))
	if w.done || !found || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		return w.ResponseWriter.Write(page)
	}
	w.done = true
	title, style, found := bytes.Cut(head, []byte("</title>"))
	if start := bytes.LastIndex(title, []byte("<title>")); found && start >= 0 && w.Title != "" {
		title = append(title[:start:start], "<title>"+template.HTMLEscapeString(w.Title)...)
	}
	for _, part := range [][]byte{title, []byte("</title>" + additions), style, []byte("<body>" + w.Banner), body} {
		// #nosec G705 -- html/template has escaped it
		if _, err := w.ResponseWriter.Write(part); err != nil {
			return 0, err
		}
	}
	return len(page), nil
}
