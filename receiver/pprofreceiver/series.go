// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"errors"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
)

// label is a label of a Pyroscope series.
type label struct{ name, value string }

// Labels that mean something to Pyroscope. Others that begin with two underscores
// are its own business, and are dropped as it drops them.
const (
	labelName    = "__name__"
	labelDelta   = "__delta__"
	labelPrivate = "__"
)

// pyroscopeAttributes are the labels of Pyroscope's clients that OpenTelemetry has
// another name for. The session is one run of one process.
var pyroscopeAttributes = map[string]string{
	"service_name":   ingest.AttributeServiceName,
	"__session_id__": ingest.AttributeServiceInstanceID,
	"pyroscope_spy":  attributeSpy,
}

// scopeLabels differ between the profiles of one process: they are not of its
// resource.
var scopeLabels = map[string]string{
	"otel.scope.name":    "otel.scope.name",
	"otel.scope.version": "otel.scope.version",
	"otel_scope_name":    "otel.scope.name",
	"otel_scope_version": "otel.scope.version",
}

// attributeSpy names the client, as in gospy.
const attributeSpy = "pyroscope.spy"

// series is what the labels of a Pyroscope series say.
type series struct {
	name     string            // __name__: of the application, or the kind of profile
	resource map[string]string // attributes
	scope    map[string]string // attributes
	deltas   bool              // what is counted from the start of the process comes as differences
}

// readSeries sorts labels. where is what messages call their place. An attribute
// under the name that OpenTelemetry has for it goes before Pyroscope's name.
func readSeries(where string, labels []label) (series, error) {
	s := series{resource: map[string]string{}, scope: map[string]string{}}
	if err := tooManyAttributes(where, len(labels)); err != nil {
		return s, err
	}
	renamed, private := map[string]string{}, map[string]string{}
	for _, l := range labels {
		to, name := s.resource, l.name
		switch mapped, scoped := pyroscopeAttributes[l.name], scopeLabels[l.name]; {
		case mapped != "":
			to, name = renamed, mapped
		case scoped != "":
			to, name = s.scope, scoped
		case strings.HasPrefix(l.name, labelPrivate):
			to = private
		}
		if err := setAttribute(to, where, name, l.value); err != nil {
			return s, err
		}
	}
	for name, value := range renamed {
		if s.resource[name] == "" {
			s.resource[name] = value
		}
	}
	s.name, s.deltas = private[labelName], private[labelDelta] == "false"
	return s, nil
}

var errSeriesName = errors.New("want an application with labels, as in app{region=eu,version=1}")

// parseSeriesName takes apart app{name=value,name=value}. Neither names nor values
// can hold a comma or braces: the format has no way to write them.
func parseSeriesName(text string) (app string, labels []label, err error) {
	app, rest, found := strings.Cut(text, "{")
	app = strings.TrimSpace(app)
	if !found {
		return app, nil, nil
	}
	rest, found = strings.CutSuffix(strings.TrimSpace(rest), "}")
	if !found {
		return "", nil, errSeriesName
	}
	if err := tooManyAttributes("labels", 1+strings.Count(rest, ",")); err != nil {
		return "", nil, err
	}
	for pair := range strings.SplitSeq(rest, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		if !found || name == "" {
			return "", nil, errSeriesName
		}
		labels = append(labels, label{name, strings.TrimSpace(value)})
	}
	return app, labels, nil
}
