// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"net/url"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
)

// PprofPath is the path of plain pprof: one profile as the body, attributes of its resource in the query.
const PprofPath = "/v1/pprof"

// parameterProfileType is the query parameter that sets otelcol_profiles.type.
const parameterProfileType = "profile_type"

func readPprof(r *Request) (push Push, err error) {
	query, err := r.Query()
	if err != nil {
		return push, err
	}
	attributes, profileType, err := readQuery(query, r.AuthParameters)
	if err != nil {
		return push, err
	}
	body, err := r.Profile()
	if err != nil {
		return push, err
	}
	push.Profiles = []Profile{{Name: "body", Payload: ingest.Payload{
		Data:        body,
		Resource:    ingest.NewResource(r.ResourceAttributes, attributes),
		ProfileType: profileType,
	}}}
	return push, nil
}

// readQuery reads resource attributes, which have a dot in their name or before it, and
// profile_type. It skips ignored parameters and rejects any other, which would be lost
// silently. Errors name parameters, never their values.
func readQuery(query url.Values, ignored []string) (attributes map[string]string, profileType string, err error) {
	attributes, parameters := make(map[string]string, len(query)), map[string]string{}
	for name, values := range query {
		if slices.Contains(ignored, name) {
			continue
		}
		value := values[0]
		switch {
		case len(values) > 1:
			return nil, "", malformed("query: parameter %q is given %d times: must be given once", name, len(values))
		case name == parameterProfileType && value == "":
			return nil, "", malformed("query: parameter %q is empty: must be a profile type such as cpu", name)
		case name == parameterProfileType:
			err = setAttribute(parameters, "query", name, value)
		case name == "" || strings.Contains(name, "."):
			err = setAttribute(attributes, "query", attributeName(name), value)
		default:
			return nil, "", malformed("query: parameter %q is unknown: must be %s or a resource attribute, which has a dot in its name or before it, for example service.name or .region", name, parameterProfileType)
		}
		if err != nil {
			return nil, "", err
		}
	}
	return attributes, parameters[parameterProfileType], nil
}

// attributeName is the attribute that a parameter sets: the dot before a name without another one is not part of it.
func attributeName(parameter string) string {
	if name, found := strings.CutPrefix(parameter, "."); found && name != "" && !strings.Contains(name, ".") {
		return name
	}
	return parameter
}
