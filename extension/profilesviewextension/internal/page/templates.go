// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"embed"
	"html/template"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

//go:embed templates
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{"clip": clip, "count": count}).ParseFS(files, "templates/*"))

// render writes a template. An error is that of the client's connection.
func render(w io.Writer, name string, data any) { _ = templates.ExecuteTemplate(w, name+".html", data) }

// writePage writes a page as a response.
func writePage(w http.ResponseWriter, status int, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	render(w, name, data)
}

// clipped is a text that may be too long for its place.
type clipped struct {
	Short, Full string // Full is empty if Short is all of it
}

func clip(text string) clipped {
	const most = 60
	text = strings.ToValidUTF8(text, "\uFFFD")
	if utf8.RuneCountInString(text) <= most {
		return clipped{Short: text}
	}
	return clipped{Short: string([]rune(text)[:most]) + "…", Full: text}
}
