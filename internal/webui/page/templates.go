// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io"
	"net/http"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// files are the templates, and the stylesheet and the script of all pages.
//
//go:embed templates static
var files embed.FS

// policy is the Content-Security-Policy of our pages. Nothing that a profile names can be a script or a style.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"count": webui.Count, "static": staticPath, "utc": func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
	"clock": func(t time.Time) string { return t.UTC().Format(time.DateTime) },
}).ParseFS(files, "templates/*"))

// staticPath returns the path of a static file. It is another one if the content is.
func staticPath(name string) (string, error) {
	content, err := files.ReadFile("static/" + name)
	hash := sha256.Sum256(content)
	return "/static/" + hex.EncodeToString(hash[:6]) + "/" + name, err
}

// static serves the stylesheet and the script.
func static(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	content, err := files.ReadFile("static/" + name)
	if path, _ := staticPath(name); err != nil || r.URL.Path != path {
		return errNotFound
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	return nil
}

// render writes a template. An error is that of the client's connection.
func render(w io.Writer, name string, data any) { _ = templates.ExecuteTemplate(w, name+".html", data) }

// writePage writes a page as a response.
func writePage(w http.ResponseWriter, status int, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	render(w, name, data)
}
