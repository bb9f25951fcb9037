// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/httpguard"
)

// policy is the Content-Security-Policy of what is no page.
const policy = "default-src 'none'; frame-ancestors 'none'"

// pprofPolicy is that of pprof's own pages, which have scripts and styles in them.
const pprofPolicy = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; " +
	"img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// pagePolicy is that of a page of ours: no script and no style is used but those of this server, and those of the
// page itself, by their hashes.
func pagePolicy(style, script string) string {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src 'self' " + hash(script) + "; style-src 'self' " + hash(style) + "; " +
		"img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
}

// Options say how Handler shows a profile.
type Options struct {
	// Title is that of each page, unless it is empty.
	Title string
	// Banner is put at the top of each page.
	Banner template.HTML
}

// mounted are the pages of pprof that are served beside ours. The others read files that a profile names, write to
// the home directory, or are not known here.
var mounted = []string{"/top", "/peek", "/download"}

// additions hide the menu entries of these, open the other menus by keyboard, and keep the search on narrow screens.
//
//go:embed additions.html
var additions string

// Handler returns pprof's web UI of p, whose links are relative. It gives the functions of p the names by which they are
// shown, and keeps a copy.
func Handler(p *profile.Profile, options Options) (http.Handler, error) {
	NameFunctions(p)
	mux, own := http.NewServeMux(), p.Copy()
	err := run(p, []string{"-http=localhost:0", "-no_browser", "-flat", "-nodecount=" + strconv.Itoa(defaultNodes)}, &driver.Options{
		HTTPServer: func(args *driver.HTTPServerArgs) error {
			for _, path := range mounted {
				handler := args.Handlers[path]
				if handler == nil {
					return fmt.Errorf("pprof has no page %s", path)
				}
				mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Security-Policy", pprofPolicy)
					handler.ServeHTTP(&pageWriter{ResponseWriter: w, Options: options}, r)
				})
			}
			mux.HandleFunc("/graph", graph(own, options))
			mux.HandleFunc("/flamegraph", flamegraph(own, options))
			mux.HandleFunc("/{$}", toFlamegraph)
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := checkPatterns(r.URL.Query()); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mux.ServeHTTP(w, r)
	}), nil
}

// toFlamegraph redirects to the flame graph. Its links are relative.
func toFlamegraph(w http.ResponseWriter, r *http.Request) {
	location := "flamegraph"
	if r.URL.RawQuery != "" {
		location += "?" + r.URL.RawQuery
	}
	w.Header().Set("Location", location)
	w.WriteHeader(http.StatusFound)
}

// Protect makes a handler read-only apart from requests that mayPost accepts, which are POST, answers only requests
// for one of hosts, for this computer or for the address that the connection has here (another name may have been
// rebound to that address by an attacker), answers pages of other sites only if a person follows a link to a page,
// and sets a Content-Security-Policy.
func Protect(next http.Handler, mayPost func(*http.Request) bool, hosts ...string) http.Handler {
	next = httpguard.RejectForeignPages(next, func(r *http.Request) bool {
		return !mayPost(r) && !strings.HasPrefix(r.URL.Path, "/api/") && !strings.HasSuffix(r.URL.Path, "/download")
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
	added := "</title>" + additions
	if !hasGraphviz() {
		added += "<style>#graphbtn { display: none !important }</style>"
	}
	for _, part := range [][]byte{title, []byte(added), style, []byte("<body>" + w.Banner), body} {
		// #nosec G705 -- html/template has escaped it
		if _, err := w.ResponseWriter.Write(part); err != nil {
			return 0, err
		}
	}
	return len(page), nil
}
