// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"errors"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
)

type label struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Labels with a meaning for Pyroscope. It drops others that start with two underscores,
// and so does this package.
const (
	labelName     = "__name__"
	labelDelta    = "__delta__"
	labelSpyName  = "spy_name"
	prefixPrivate = "__"
)

// labelSpy names the client library, for example gospy. It is Pyroscope's label, and keeps its name as an attribute.
const labelSpy = "pyroscope_spy"

// spyDotnet is the client for .NET, whose allocations and locks are those of the time of a profile.
const spyDotnet = "dotnetspy"

// resourceNames are OpenTelemetry's names of Pyroscope's labels. A session is one run
// of one process.
var resourceNames = map[string]string{
	"service_name":   ingest.AttributeServiceName,
	"__session_id__": ingest.AttributeServiceInstanceID,
}

// scopeNames are the labels that differ between the profiles of one process and so
// belong to the scope.
var scopeNames = map[string]string{
	"otel.scope.name":    "otel.scope.name",
	"otel.scope.version": "otel.scope.version",
	"otel_scope_name":    "otel.scope.name",
	"otel_scope_version": "otel.scope.version",
}

// series is the content of the labels of a series.
type series struct {
	name     string            // __name__: the application or the profile type
	resource map[string]string // attributes
	scope    map[string]string // attributes
	deltas   bool              // cumulative values were turned into deltas
}

// newSeries sorts labels. where is their place in messages. OpenTelemetry's name of an
// attribute takes precedence over Pyroscope's.
func newSeries(where string, labels []label) (series, error) {
	s := series{resource: map[string]string{}, scope: map[string]string{}}
	if err := checkCount(where, len(labels)); err != nil {
		return s, err
	}
	renamed, private := map[string]string{}, map[string]string{}
	for _, l := range labels {
		to, name := s.resource, l.Name
		switch resourceName, scopeName := resourceNames[l.Name], scopeNames[l.Name]; {
		case resourceName != "":
			to, name = renamed, resourceName
		case scopeName != "":
			to, name = s.scope, scopeName
		case strings.HasPrefix(l.Name, prefixPrivate):
			to = private
		}
		if err := setAttribute(to, where, name, l.Value); err != nil {
			return s, err
		}
	}
	if spy := s.resource[labelSpyName]; spy != "" && s.resource[labelSpy] == "" {
		delete(s.resource, labelSpyName)
		s.resource[labelSpy] = spy
	}
	for name, value := range renamed {
		if s.resource[name] == "" {
			s.resource[name] = value
		}
	}
	s.name, s.deltas = private[labelName], private[labelDelta] == "false" || s.resource[labelSpy] == spyDotnet
	return s, nil
}

var errName = errors.New("must be an application with labels, for example app{region=eu,version=1}")

// parseName parses app{name=value,name=value}. Names and values cannot contain commas
// or braces: the format has no escapes.
func parseName(text string) (app string, labels []label, err error) {
	app, rest, found := strings.Cut(text, "{")
	app = strings.TrimSpace(app)
	if !found {
		return app, nil, nil
	}
	rest, found = strings.CutSuffix(strings.TrimSpace(rest), "}")
	if !found {
		return "", nil, errName
	}
	if err := checkCount("labels", 1+strings.Count(rest, ",")); err != nil {
		return "", nil, err
	}
	for pair := range strings.SplitSeq(rest, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		if !found || name == "" {
			return "", nil, errName
		}
		labels = append(labels, label{name, strings.TrimSpace(value)})
	}
	return app, labels, nil
}
