// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
)

//go:embed graph.html
var graphText string

//go:embed graph.css
var graphStyle string

// graphPage is the page of the graph.
var graphPage = template.Must(template.New("").Parse(graphText))

var graphPolicy = pagePolicy(graphStyle, "")

// hasGraphviz reports whether its program is installed.
func hasGraphviz() bool {
	_, err := exec.LookPath("dot")
	return err == nil
}

// graphTimeout bounds how long Graphviz may take.
const graphTimeout = 10 * time.Second

// graph returns the page of the graph of p. pprof's runs Graphviz without a time limit.
func graph(p *profile.Profile, options Options) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		shown, index, err := filtered(p, query)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), graphTimeout)
		defer cancel()
		svg, err := draw(ctx, shown.Copy(), index)
		var page bytes.Buffer
		if err == nil {
			err = graphPage.Execute(&page, map[string]any{
				"Title": cmp.Or(options.Title, p.SampleType[index].Type), "Banner": options.Banner,
				"Views": []string{"flamegraph", "top", "peek"}, "SampleTypes": p.SampleType,
				"Query": template.URL(query.Encode()), // #nosec G203 -- Encode escapes keys and values
				"SVG":   template.HTML(svg),           // #nosec G203 -- Graphviz escapes text
				"Style": template.CSS(graphStyle),     // #nosec G203 -- it is ours
			})
		}
		switch {
		case err == nil:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Security-Policy", graphPolicy)
			_, _ = w.Write(page.Bytes()) // an error is that of the client's connection
		case errors.Is(err, exec.ErrNotFound):
			http.Error(w, err.Error(), http.StatusNotImplemented)
		case ctx.Err() != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		default:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

// filtered returns the part of a profile that the parameters of pprof's menu Refine leave, p itself if that is all of it,
// and the index of the sample type to show.
func filtered(p *profile.Profile, query url.Values) (shown *profile.Profile, index int, err error) {
	if index, err = p.SampleIndexByName(query.Get("si")); err != nil {
		return nil, 0, err
	}
	compiled, instructions := map[string]*regexp.Regexp{}, labels.MaxInstructions
	for _, f := range filtersOf(query) {
		if f.Value == "" {
			continue
		}
		made, err := labels.CompilePattern(f.Value, instructions)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", f.Key, err)
		}
		instructions -= made.Instructions
		compiled[f.Key] = made.Regexp
	}
	if len(compiled) == 0 {
		return p, index, nil
	}
	shown = p.Copy()
	shown.FilterSamplesByName(compiled["f"], compiled["i"], compiled["h"], compiled["s"])
	shown.ShowFrom(compiled["sf"])
	return shown, index, nil
}

// plain replaces characters with a meaning in Graphviz's language. pprof does not escape all names, and some
// attributes of that language name files.
var plain = strings.NewReplacer(`"`, "'", `\`, "/", "\n", " ", "\r", " ", "\x00", "\uFFFD", "<", "‹", ">", "›")

// draw returns the graph of a sample type of p, which it changes, as SVG.
func draw(ctx context.Context, p *profile.Profile, index int) ([]byte, error) {
	for _, s := range p.Sample {
		s.Label, s.NumLabel, s.NumUnit = nil, nil, nil
	}
	p.Comments, p.DocURL, p.DefaultSampleType = nil, "", p.SampleType[index].Type
	replaceTexts(p, plain.Replace)
	var dot, svg, stderr bytes.Buffer
	if err := run(p, []string{"-dot", "-output=dot", "-flat", "-nodecount=" + strconv.Itoa(defaultNodes)}, &driver.Options{Writer: writer{&dot}}); err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, "dot", "-Tsvg")
	command.Stdin, command.Stdout, command.Stderr = &dot, &svg, &stderr
	err := command.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("the graph needs Graphviz: install it on the machine of this server, or use the flame graph: %w", err)
	case ctx.Err() != nil:
		return nil, errors.New("Graphviz takes too long for this graph: focus on a function, or use the flame graph")
	case err != nil:
		return nil, fmt.Errorf("Graphviz failed: %w: %s", err, stderr.String())
	}
	drawing := svg.Bytes()
	return drawing[max(0, bytes.Index(drawing, []byte("<svg"))):], nil // without the XML prolog
}
