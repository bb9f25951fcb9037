// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/google/pprof/profile"
)

//go:embed templates
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{"clip": clip, "count": count}).ParseFS(files, "templates/*"))

// render writes a page. An error is that of the client's connection.
func render(w io.Writer, name string, data any) { _ = templates.ExecuteTemplate(w, name+".html", data) }

// clipped is a text that may be too long for its place.
type clipped struct {
	Short, Full string
	Long        bool
}

func clip(text string) clipped {
	const most = 60
	text = strings.ToValidUTF8(text, "\uFFFD")
	if utf8.RuneCountInString(text) <= most {
		return clipped{Short: text}
	}
	return clipped{Short: string([]rune(text)[:most]) + "…", Full: text, Long: true}
}

// exampleCurl pushes a profile without a service or a file.
var exampleCurl = func() string {
	f := &profile.Function{ID: 1, Name: "main.main"}
	l := &profile.Location{ID: 1, Line: []profile.Line{{Function: f}}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		Sample:     []*profile.Sample{{Location: []*profile.Location{l}, Value: []int64{1e9}}},
		Location:   []*profile.Location{l}, Function: []*profile.Function{f},
	}
	var b bytes.Buffer
	_ = p.WriteUncompressed(&b) // a buffer has no errors
	return "echo " + base64.StdEncoding.EncodeToString(b.Bytes()) + " | base64 -d |\n  curl --data-binary @- 'http://localhost:4040/v1/pprof?service.name=example'"
}()
