// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/translator/foldedtranslator"
)

// IngestPath is the path of Pyroscope's older protocol: a form with the parts profile and sample_type_config, or jfr and
// labels; or with format=pprof or format=jfr the profile as the body. Without a format, or with
// groups, lines, folded or collapsed, the body is folded stacks.
const IngestPath = "/ingest"

const attributeAppName = "app_name"

// sampleTypeConfig describes one sample type.
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

// ingestion is the profile of a request and its description.
type ingestion struct {
	ingest.Payload
	spy         string // the client's name of itself, such as gospy
	aggregation string // of all sample types that config does not contain
	config      map[string]sampleTypeConfig
}

func readIngest(r *Request) (push Push, err error) {
	query, err := r.Query()
	if err != nil {
		return push, err
	}
	name := "profile"
	format := query.Get("format")
	isFolded := slices.Contains([]string{"", "groups", "folded", "collapsed", "lines"}, format) && r.MediaType != mediaTypeForm && !strings.HasPrefix(r.MediaType, "binary/octet-stream+")
	in, foldedType, err := readIngestQuery(query, r.ResourceAttributes, isFolded)
	if err != nil {
		return push, err
	}
	switch {
	case r.MediaType == mediaTypeForm && (format == "" || format == "pprof" || format == "jfr"):
		push.Skipped, err = in.readForm(r)
	case format == "pprof" || format == "jfr":
		in.Data, err = r.Profile()
	case isFolded:
		in.Folded = in.folded(query, foldedType)
		in.Folded.Lines = format == "lines"
		name = "profile, read as folded stacks"
		if format == "" {
			name += " without the parameter \"format\""
		}
		if in.Data, err = r.Profile(); err == nil && r.withoutBreaks && joinedLines.Match(in.Data) {
			err = malformed("body: folded stacks in one line: a value is followed by the next stack")
		}
	default:
		return push, unsupported("format is %q: want a form with a part named profile or jfr; or as the body a profile with format=pprof or format=jfr, or folded stacks with format=groups, lines, folded or collapsed; Pyroscope's other formats are not supported", format)
	}
	if err != nil {
		return push, err
	}
	in.ProfileTypeOf, in.Temporality, in.ProfileAttributes = in.profileType, in.temporality, in.display
	push.Profiles = []Profile{{Name: name, Payload: in.Payload}}
	return push, nil
}

// joinedLines finds a value to which the stack of the next line was joined.
var joinedLines = regexp.MustCompile(` [0-9]+[^0-9 .;]`)

// readIngestQuery reads name, from, until, spyName, aggregationType and sampleRate, which is for recordings of JVMs and
// for folded stacks. The name of folded stacks may end in their type, as in shop.cart.cpu: readIngestQuery returns the
// type, and its service is shop.cart. It ignores all other parameters; folded reads units, which repeat those of other profiles.
func readIngestQuery(query url.Values, resourceAttributes map[string]string, isFolded bool) (in ingestion, foldedType string, err error) {
	app, labels, err := parseName(query.Get("name"))
	if err != nil {
		return in, "", fmt.Errorf("query: parameter \"name\": %w", err)
	}
	if dot := strings.LastIndexByte(app, '.'); isFolded && dot > 0 && foldedTypes[app[dot+1:]] != (knownFolded{}) {
		app, foldedType = app[:dot], app[dot+1:]
	}
	series, err := newSeries("query: labels of the parameter \"name\"", labels)
	if err != nil {
		return in, "", err
	}
	resource := series.resource
	appAttribute := ingest.AttributeServiceName
	if service := resource[appAttribute]; service != "" && service != app {
		appAttribute = attributeAppName
	}
	for _, known := range []label{{appAttribute, app}, {labelSpy, query.Get("spyName")}} {
		if known.Value == "" || resource[known.Name] != "" {
			continue
		}
		delete(resource, known.Name) // an empty label
		if err := setAttribute(resource, "query", known.Name, known.Value); err != nil {
			return in, "", err
		}
	}
	in.spy = cmp.Or(query.Get("spyName"), resource[labelSpy])
	in.FunctionsOfLocations = in.spy == spyDotnet
	in.Resource, in.ScopeAttributes = ingest.NewResource(resourceAttributes, resource), series.scope
	if in.TimeRange.Start, err = parsePyroscopeTime(query.Get("from")); err != nil {
		return in, "", malformed("query: parameter \"from\": %v", err)
	}
	if in.TimeRange.End, err = parsePyroscopeTime(query.Get("until")); err != nil {
		return in, "", malformed("query: parameter \"until\": %v", err)
	}
	in.aggregation = query.Get("aggregationType")
	if rate, err := strconv.ParseFloat(query.Get("sampleRate"), 64); err == nil && rate > 0 && rate <= 1e9 {
		in.Recording.SampleRate = rate
	}
	return in, foldedType, nil
}

// defaultSampleRate is that of Pyroscope's clients, per second.
const defaultSampleRate = 100

// knownFolded is a type of folded stacks.
type knownFolded struct {
	sampleType, unit string
	profileType      string // where the sample type does not tell
	isTime           bool   // values are samples, each of which stands for the time of a period
}

// foldedTypes has the types in which Pyroscope's names of folded stacks end.
var foldedTypes = map[string]knownFolded{
	"cpu":            {"cpu", "nanoseconds", ingest.ProfileTypeCPU, true},
	"itimer":         {"cpu", "nanoseconds", ingest.ProfileTypeCPU, true},
	"wall":           {"wall", "nanoseconds", ingest.ProfileTypeWall, true},
	"alloc_objects":  {"alloc_objects", "count", ingest.ProfileTypeHeap, false},
	"alloc_space":    {"alloc_space", "bytes", ingest.ProfileTypeHeap, false},
	"inuse_objects":  {"inuse_objects", "count", ingest.ProfileTypeHeap, false},
	"inuse_space":    {"inuse_space", "bytes", ingest.ProfileTypeHeap, false},
	"goroutines":     {"goroutines", "count", ingest.ProfileTypeGoroutine, false},
	"mutex_count":    {"contentions", "count", ingest.ProfileTypeMutex, false},
	"mutex_duration": {"delay", "nanoseconds", ingest.ProfileTypeMutex, false},
	"lock_count":     {"contentions", "count", ingest.ProfileTypeMutex, false},
	"lock_duration":  {"delay", "nanoseconds", ingest.ProfileTypeMutex, false},
	"block_count":    {"contentions", "count", ingest.ProfileTypeBlock, false},
	"block_duration": {"delay", "nanoseconds", ingest.ProfileTypeBlock, false},
}

// folded describes the values of folded stacks, by the type in which their name ends or, without one, by units. With
// neither they are samples of CPU time, as for Pyroscope's server.
func (in *ingestion) folded(query url.Values, foldedType string) *foldedtranslator.Unmarshaler {
	in.aggregation = cmp.Or(in.aggregation, aggregationSum)
	memory := "alloc_"
	if in.aggregation == aggregationAverage {
		memory = "inuse_"
	}
	if foldedType == "" {
		foldedType = "cpu"
		switch query.Get("units") {
		case "objects":
			foldedType = memory + "objects"
		case "bytes":
			foldedType = memory + "space"
		case "goroutines":
			foldedType = "goroutines"
		case "lock_samples":
			return &foldedtranslator.Unmarshaler{SampleType: "contentions", Unit: "count"} // of mutexes, or blocking
		case "lock_nanoseconds":
			return &foldedtranslator.Unmarshaler{SampleType: "delay", Unit: "nanoseconds"}
		}
	}
	known := foldedTypes[foldedType]
	in.ProfileType = known.profileType
	folded := &foldedtranslator.Unmarshaler{SampleType: known.sampleType, Unit: known.unit}
	if known.isTime {
		folded.Period = max(1, int64(1e9/cmp.Or(in.Recording.SampleRate, defaultSampleRate)))
	}
	return folded
}

// readForm reads the profile of a form. It returns the number of skipped parts by kind.
func (in *ingestion) readForm(r *Request) (skipped map[string]int, err error) {
	const partProfile, partConfig, partPrevious, partJFR, partLabels = "profile", "sample_type_config", "prev_profile", "jfr", "labels"
	parts, err := r.Form()
	if err != nil {
		return nil, err
	}
	found := false
	skipped = map[string]int{}
	for i := range parts {
		switch p := &parts[i]; p.Name {
		case partProfile, partJFR:
			if found {
				return nil, malformed("body: duplicate part %q", p.Name)
			}
			in.Data, found = p.Body, true
		case partConfig:
			if err := p.JSON(&in.config); err != nil {
				return nil, fmt.Errorf("body: %w", err)
			}
		case partLabels:
			in.Recording.Labels = p.Body
		case partPrevious: // the profile continues it and contains it
			skipped["previous_profile"]++
		default:
			skipped["other"]++
		}
	}
	if !found {
		return nil, malformed("body: no part named profile or jfr")
	}
	return skipped, nil
}

// temporality is that of sample_type_config: cumulative, instant if it is averaged,
// otherwise delta. Without a config the aggregation of the request decides, except for
// sample types that are never deltas.
func (in *ingestion) temporality(sampleType string) string {
	config, configured := in.config[sampleType]
	switch {
	case config.Cumulative:
		return sampletypes.Cumulative
	case config.Aggregation == aggregationAverage:
		return sampletypes.Instant
	case configured:
		return sampletypes.Delta
	case isInstant(sampleType), in.aggregation == aggregationAverage:
		return sampletypes.Instant
	case in.aggregation == aggregationSum, in.spy == spyDotnet:
		return sampletypes.Delta
	case in.TimeRange.Start > 0 && in.TimeRange.End >= in.TimeRange.Start && isInterval(sampleType): // clients round to seconds
		return sampletypes.Delta
	}
	return ""
}

// isInterval reports whether values of a sample type are those of an interval in every runtime: time on a CPU or by a
// clock, and samples of it.
func isInterval(sampleType string) bool {
	return slices.Contains([]string{"cpu", "wall", "time", "samples", "sample"}, sampleType)
}

// isInstant reports whether a sample type is instant in every runtime: the heap in use,
// goroutines and the heap of Node.js.
func isInstant(sampleType string) bool {
	return ingest.IsInUse(sampleType) ||
		slices.Contains([]string{"goroutine", "goroutines", "goroutineleak", "threadcreate", "objects", "space"}, sampleType)
}

// display returns Pyroscope's presentation of a sample type.
func (in *ingestion) display(sampleType string) (attributes []ingest.Attribute) {
	config := in.config[sampleType]
	if config.DisplayName != "" {
		attributes = append(attributes, ingest.Attribute{Key: attrkey.DisplayName, Value: config.DisplayName})
	}
	if config.Units != "" {
		attributes = append(attributes, ingest.Attribute{Key: attrkey.DisplayUnit, Value: config.Units})
	}
	return attributes
}

// profileType returns the profile type that a sample type has of its own. Those of Go's mutex and block profiles are
// equal: their display names tell them apart.
func (in *ingestion) profileType(sampleType string) string {
	name := in.config[sampleType].DisplayName
	if other := map[string]string{"contentions": "delay", "delay": "contentions"}[sampleType]; name == "" {
		name = in.config[other].DisplayName
	}
	switch {
	case strings.HasPrefix(name, "mutex_"):
		return ingest.ProfileTypeMutex
	case strings.HasPrefix(name, "block_"):
		return ingest.ProfileTypeBlock
	}
	return sampletypes.OwnProfileType(sampleType)
}

// parseTime parses a time since 1970 as Pyroscope's clients write it. The number of
// digits states the unit: seconds (up to 10), milliseconds (13), microseconds (16) or
// nanoseconds (19). An empty text is 0, unknown.
func parsePyroscopeTime(text string) (pcommon.Timestamp, error) {
	if text == "" {
		return 0, nil
	}
	unit := map[int]time.Duration{13: time.Millisecond, 16: time.Microsecond, 19: time.Nanosecond}[len(text)]
	if len(text) <= 10 {
		unit = time.Second
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || unit == 0 || n > math.MaxInt64/uint64(unit) {
		return 0, errors.New("not a time, want seconds since 1970, or 13 digits of milliseconds, 16 of microseconds, 19 of nanoseconds")
	}
	return pcommon.Timestamp(n) * pcommon.Timestamp(unit), nil
}
