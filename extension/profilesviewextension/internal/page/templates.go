// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"embed"
	"html/template"
	"io"
	"net/http"
)

//go:embed templates
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{"count": count}).ParseFS(files, "templates/*"))

// render writes a template. An error is that of the client's connection.
func render(w io.Writer, name string, data any) { _ = templates.ExecuteTemplate(w, name+".html", data) }

// writePage writes a page as a response.
func writePage(w http.ResponseWriter, status int, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	render(w, name, data)
}
