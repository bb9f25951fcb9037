// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const (
	ingestPath = "/ingest"

	// Attributes of a Profile: what Pyroscope shows its sample type as. The type and
	// the unit themselves are those of the payload, which its values belong to.
	attributeDisplayName  = "pyroscope.sample_type.display_name"
	attributeDisplayUnits = "pyroscope.sample_type.units"

	attributeAppName = "app_name"
)

// sampleTypeConfig is what Pyroscope's clients say about one sample type.
type sampleTypeConfig struct {
	Units       string `json:"units"`
	DisplayName string `json:"display-name"`
	Aggregation string `json:"aggregation"`
	Cumulative  bool   `json:"cumulative"`
}

const (
	aggregationSum     = "sum"
	aggregationAverage = "average"
)

// maxConfiguredTypes bounds the entries of sample_type_config, before there is memory
// for them: as many as a pprof has sample types at most.
const maxConfiguredTypes = 1 + 1024

// ingestion is a request to /ingest.
type ingestion struct {
	series      series
	span        ingest.TimeRange
	aggregation string // of all sample types without a config of their own
	config      map[string]sampleTypeConfig
	skipped     map[string]int // parts, by what they are
}

// ingest handles POST /ingest, Pyroscope's first protocol: a form with the parts
// profile and sample_type_config, or with format=pprof the profile as the body.
func (s *server) ingest(w http.ResponseWriter, r *http.Request) error {
	query, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	in, err := readIngestQuery(query)
	if err != nil {
		return err
	}
	held := s.budget.Reserve()
	defer held.Release()
	var body []byte
	switch format := query.Get("format"); {
	case format == "jfr":
		return unsupported("format: a JFR recording, want pprof")
	case isForm(r.Header) && (format == "" || format == "pprof"):
		body, err = s.readIngestForm(r, held, &in)
	case format == "pprof":
		body, err = s.readBody(r, held)
	default:
		return unsupported("format: want a form with a part named profile, or format=pprof and a pprof profile as the body; folded text and Pyroscope's other formats are not supported")
	}
	if err != nil {
		return err
	}
	profile := attachment{name: "profile", body: body, payload: in.arrival(s)}
	if err := s.acceptAll(r.Context(), ingestPath, []attachment{profile}, held); err != nil {
		return err
	}
	for what, parts := range in.skipped {
		s.skip(r.Context(), ingestPath, what, parts)
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// readIngestQuery reads the parameters name, from, until, spyName and
// aggregationType. sampleRate and units repeat what a pprof says; Pyroscope's
// clients send others still.
func readIngestQuery(query url.Values) (in ingestion, err error) {
	app, labels, err := parseSeriesName(query.Get("name"))
	if err != nil {
		return in, fmt.Errorf("query: parameter \"name\": %w", err)
	}
	if in.series, err = readSeries("query: labels of the parameter \"name\"", labels); err != nil {
		return in, err
	}
	resource := in.series.resource
	for _, known := range []label{{ingest.AttributeServiceName, app}, {attributeSpy, query.Get("spyName")}} {
		if known.value == "" {
			continue
		}
		name := known.name
		if name == ingest.AttributeServiceName && resource[name] != "" && resource[name] != app {
			name = attributeAppName
		}
		if resource[name] != "" {
			continue
		}
		delete(resource, name)
		if err := setAttribute(resource, "query", name, known.value); err != nil {
			return in, err
		}
	}
	if in.span.Start, err = parseTime(query.Get("from")); err != nil {
		return in, badRequest("query: parameter \"from\": " + err.Error())
	}
	if in.span.End, err = parseTime(query.Get("until")); err != nil {
		return in, badRequest("query: parameter \"until\": " + err.Error())
	}
	in.aggregation = query.Get("aggregationType")
	return in, nil
}

// readIngestForm returns the profile of a form, and reads what the form says of its
// sample types.
func (s *server) readIngestForm(r *http.Request, held *ingest.Reservation, in *ingestion) ([]byte, error) {
	const partProfile, partConfig, partPrevious, partJFR = "profile", "sample_type_config", "prev_profile", "jfr"
	parts, err := s.readForm(r, held, func(name, _ string) bool { return name == partProfile || name == partConfig })
	if err != nil {
		return nil, err
	}
	var profile *part
	in.skipped = map[string]int{}
	for i := range parts {
		switch p := &parts[i]; p.name {
		case partProfile:
			if profile != nil {
				return nil, badRequest("body: the part \"profile\" is there twice")
			}
			profile = p
		case partConfig:
			document, err := p.document()
			if err != nil {
				return nil, err
			}
			if n := bytes.Count(document, []byte("{")); n > maxConfiguredTypes {
				return nil, &pproftranslator.LimitError{What: "part \"sample_type_config\": braces", Limit: maxConfiguredTypes, Got: int64(n)}
			}
			if err := json.Unmarshal(document, &in.config); err != nil {
				return nil, badRequest("body: part \"sample_type_config\": not the JSON that is wanted: " + jsonError(err))
			}
		case partJFR:
			return nil, unsupported("body: the part \"jfr\" is a JFR recording, want a pprof profile in a part named profile")
		case partPrevious:
			// The profile holds it already: it counts on from there.
			in.skipped[skippedPrevious]++
		default:
			in.skipped[skippedOther]++
		}
	}
	if profile == nil {
		return nil, badRequest("body: there is no part named profile")
	}
	return profile.body, nil
}

func (in *ingestion) arrival(s *server) ingest.Payload {
	return ingest.Payload{
		Resource:          s.resourceOf(in.series.resource),
		ScopeAttributes:   in.series.scope,
		ProfileTypeOf:     in.kind,
		Temporality:       in.temporality,
		ProfileAttributes: in.display,
		TimeRange:         in.span,
	}
}

// temporality is what sample_type_config says of a sample type: cumulative, or with
// an average over time the state of a moment, else what happened since the last
// profile. Without a config the request's aggregation says the same, but for what
// never is a difference.
func (in *ingestion) temporality(sampleType string) ingest.Temporality {
	config, configured := in.config[sampleType]
	switch {
	case config.Cumulative:
		return ingest.TemporalityCumulative
	case config.Aggregation == aggregationAverage:
		return ingest.TemporalityInstant
	case configured:
		return ingest.TemporalityDelta
	case isState(sampleType), in.aggregation == aggregationAverage:
		return ingest.TemporalityInstant
	case in.aggregation == aggregationSum:
		return ingest.TemporalityDelta
	}
	return ingest.TemporalityUnknown
}

// isState tells of sample types that are the state of a moment in every runtime:
// the heap in use, goroutines, and the heap of Node.js.
func isState(sampleType string) bool {
	return ingest.IsInUse(sampleType) ||
		slices.Contains([]string{"goroutine", "goroutines", "threadcreate", "objects", "space"}, sampleType)
}

// display is what Pyroscope shows a sample type as.
func (in *ingestion) display(sampleType string) []ingest.Attribute {
	var tags []ingest.Attribute
	config := in.config[sampleType]
	if config.DisplayName != "" {
		tags = append(tags, ingest.Attribute{Key: attributeDisplayName, Value: config.DisplayName})
	}
	if config.Units != "" {
		tags = append(tags, ingest.Attribute{Key: attributeDisplayUnits, Value: config.Units})
	}
	return tags
}

// kind tells the kind of profile by its sample types, and those of Go's mutex and
// block profiles, which are the same, by the names that they are shown as.
func (in *ingestion) kind(sampleTypes []string) string {
	for _, sampleType := range sampleTypes {
		name := in.config[sampleType].DisplayName
		switch {
		case strings.HasPrefix(name, "mutex_"):
			return ingest.ProfileTypeMutex
		case strings.HasPrefix(name, "block_"):
			return ingest.ProfileTypeBlock
		}
	}
	for _, known := range []struct{ kind, sampleType string }{
		{ingest.ProfileTypeWall, "wall"},
		{ingest.ProfileTypeCPU, "cpu"},
		{ingest.ProfileTypeHeap, "inuse_space"},
		{ingest.ProfileTypeHeap, "alloc_space"},
		{ingest.ProfileTypeHeap, "space"}, // of Node.js
		{ingest.ProfileTypeGoroutine, "goroutine"},
		{ingest.ProfileTypeGoroutine, "goroutines"},
	} {
		if slices.Contains(sampleTypes, known.sampleType) {
			return known.kind
		}
	}
	return ""
}

// jsonError is what is wrong with a document, without what is in it.
func jsonError(err error) string {
	var (
		syntax *json.SyntaxError
		typed  *json.UnmarshalTypeError
	)
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf("malformed at byte %d", syntax.Offset)
	case errors.Is(err, errBase64):
		return err.Error()
	case errors.As(err, &typed):
		return fmt.Sprintf("field %q at byte %d is no %s", typed.Field, typed.Offset, typed.Type)
	}
	return "it ends too early"
}
