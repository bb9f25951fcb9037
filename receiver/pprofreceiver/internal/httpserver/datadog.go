// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// DatadogPath is the path that Datadog's libraries send to at their agent: a form with the part event and an
// attachment for each profile.
const DatadogPath = "/profiling/v1/input"

const (
	partEvent = "event"

	suffixPprof = ".pprof"
	prefixDelta = "delta-"
	suffixJFR   = ".jfr"     // a recording of a JVM, as main.jfr is
	fileTrace   = "go.trace" // an execution trace of Go

	attributeProcessPID  = "process.pid"
	attributeSDKLanguage = "telemetry.sdk.language"

	// tagSequence counts the batches of a process. As a resource attribute it would
	// give each batch a resource of its own.
	tagSequence = "profile_seq"
)

// datadogTags are OpenTelemetry's names of tags.
var datadogTags = map[string]string{
	"service":            ingest.AttributeServiceName,
	"env":                "deployment.environment.name",
	"version":            "service.version",
	"host":               "host.name",
	"runtime-id":         ingest.AttributeServiceInstanceID,
	"language":           attributeSDKLanguage,
	"process_id":         attributeProcessPID,
	"runtime":            "process.runtime.name",
	"runtime_version":    "process.runtime.version",
	"runtime_arch":       "host.arch",
	"runtime_os":         "os.type",
	"git.commit.sha":     "vcs.ref.head.revision",
	"git.repository_url": "vcs.repository.url.full",
}

// datadogLabels are OpenTelemetry's names of labels of samples. The translator knows those
// of traces and times.
var datadogLabels = map[string]string{
	"thread id":   "thread.id",
	"thread name": "thread.name",
}

func readDatadog(r *Request) (push Push, err error) {
	parts, err := r.Form()
	if err != nil {
		return push, err
	}
	var (
		event    *Part
		profiles []Part
	)
	push.Skipped = map[string]int{}
	for i := range parts {
		p := &parts[i]
		p.File = fileName(p.Name, p.File)
		switch {
		case p.Name == partEvent && event == nil:
			event = p
		case strings.HasSuffix(p.File, suffixPprof), tellsItself(p.File):
			profiles = append(profiles, *p)
		default:
			push.Skipped[skippedKind(p.File)]++
		}
	}
	if event == nil {
		return push, malformed("body: no part named event")
	}
	payload, err := readDatadogEvent(event, r.ResourceAttributes)
	if err != nil {
		return push, fmt.Errorf("body: %w", err)
	}
	if len(profiles) == 0 {
		push.Note, err = noAttachment(push.Skipped)
	}
	for _, p := range profiles {
		payload.Data = p.Body
		push.Profiles = append(push.Profiles, Profile{Name: fmt.Sprintf("attachment %.200q", p.File), Payload: describeAttachment(payload, p.File)})
	}
	return push, err
}

// noAttachment answers a request without a profile. Libraries send metrics and traces without one; any other request has a
// profile under a name that the receiver does not know.
func noAttachment(skipped map[string]int) (note string, err error) {
	const missing = "no attachment is a profile: the name of its file must be go.trace or end in .pprof or .jfr, which .gz, .zst or .lz4 may follow"
	if skipped["metrics"]+skipped["trace"] == 0 {
		return "", malformed("body: %s", missing)
	}
	return missing + "; skipped metrics and traces", nil
}

// readDatadogEvent reads the part event: what the profiles of the request share. Its tags override resourceAttributes.
func readDatadogEvent(part *Part, resourceAttributes map[string]string) (p ingest.Payload, err error) {
	var event struct {
		Start  string `json:"start"`
		End    string `json:"end"`
		Tags   string `json:"tags_profiler"`
		Family string `json:"family"` // the language
	}
	if err := part.JSON(&event); err != nil {
		return p, err
	}
	if p.TimeRange.Start, err = parseDatadogTime(event.Start); err != nil {
		return p, fmt.Errorf("part %q: field \"start\": %w", partEvent, err)
	}
	if p.TimeRange.End, err = parseDatadogTime(event.End); err != nil {
		return p, fmt.Errorf("part %q: field \"end\": %w", partEvent, err)
	}
	attributes, err := parseDatadogTags(event.Tags)
	if err != nil {
		return p, fmt.Errorf("part %q: %w", partEvent, err)
	}
	if err := checkLength("part \"event\"", "family", event.Family); err != nil {
		return p, err
	}
	if event.Family != "" && attributes[attributeSDKLanguage] == "" {
		attributes[attributeSDKLanguage] = event.Family
	}
	p.Resource = ingest.NewResource(resourceAttributes, attributes)
	if pid, err := strconv.ParseInt(attributes[attributeProcessPID], 10, 64); err == nil {
		p.Resource.PutInt(attributeProcessPID, pid)
	}
	return p, nil
}

// parseDatadogTags parses name:value,name:value. The last of several values counts: the library
// itself adds it.
func parseDatadogTags(tags string) (map[string]string, error) {
	if err := checkCount("tags_profiler", 1+strings.Count(tags, ",")); err != nil {
		return nil, err
	}
	attributes := map[string]string{}
	for tag := range strings.SplitSeq(tags, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(tag), ":")
		if name == "" || name == tagSequence {
			continue
		}
		if known := datadogTags[name]; known != "" {
			name = known
		}
		if err := checkLength("tags_profiler", name, value); err != nil {
			return nil, err
		}
		attributes[name] = value
	}
	return attributes, nil
}

func parseDatadogTime(text string) (pcommon.Timestamp, error) {
	if text == "" {
		return 0, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Year() < 1970 || at.Year() > 2261 {
		return 0, malformed("not a time, want one such as 2026-01-02T15:04:05Z")
	}
	return pcommon.NewTimestampFromTime(at), nil
}

// fileName is the name of an attachment without a suffix of compression, which its
// first bytes show as well. An attachment without a file has the name of its part.
func fileName(name, file string) string {
	if file == "" {
		file = name
	}
	for _, suffix := range []string{".gz", ".zst", ".lz4"} {
		file = strings.TrimSuffix(file, suffix)
	}
	return file
}

// skippedKind is the attribute attachment, in the metric of skipped ones, of an
// attachment that is not a profile.
func skippedKind(file string) string {
	switch extension := path.Ext(file); {
	case extension == ".trace":
		return "trace"
	case file == "metrics.json":
		return "metrics"
	}
	return "other"
}

// tellsItself reports whether the data of an attachment tell the profile type and the temporality.
func tellsItself(file string) bool { return file == fileTrace || strings.HasSuffix(file, suffixJFR) }

// describeAttachment derives profile type and temporality from the name of the file, for example
// delta-heap.pprof. A library that profiles everything at once calls it auto.
func describeAttachment(p ingest.Payload, file string) ingest.Payload {
	if tellsItself(file) {
		return p
	}
	profileType, delta := strings.CutPrefix(strings.TrimSuffix(file, suffixPprof), prefixDelta)
	p.AttributeNames = datadogLabels
	switch profileType {
	case "goroutines":
		p.ProfileType = ingest.ProfileTypeGoroutine
	case "space": // of Node.js: the heap in use
		p.ProfileType = ingest.ProfileTypeHeap
		p.Temporality = ingest.Always(sampletypes.Instant)
		return p
	case ingest.ProfileTypeWall: // of Node.js: with CPU time
		p.ProfileType, p.ProfileTypeOf = profileType, onlyCPU
	case "auto", "profile", "rubyprofile":
		p.Temporality = mixedTemporality
		return p
	default:
		p.ProfileType = strings.ToValidUTF8(profileType, "\uFFFD")
	}
	p.Temporality = ingest.GoTemporality(p.ProfileType, delta)
	if p.Temporality == nil && delta {
		p.Temporality = ingest.Always(sampletypes.Delta)
	}
	return p
}

// onlyCPU returns the profile type of CPU time in a profile of wall-clock time.
func onlyCPU(sampleType string) string {
	if sampleType == ingest.ProfileTypeCPU {
		return ingest.ProfileTypeCPU
	}
	return ""
}

// mixedTemporality is that of profiles of all types in one. Sample types that are not
// the heap in use have a duration, which says enough.
func mixedTemporality(sampleType string) string {
	if ingest.IsInUse(sampleType) || strings.HasPrefix(sampleType, "heap-") {
		return sampletypes.Instant
	}
	return ""
}
