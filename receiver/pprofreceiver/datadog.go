// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const (
	datadogPath = "/profiling/v1/input"

	partEvent = "event"

	attributeProcessPID = "process.pid"
)

// datadogEvent is the part "event": what Datadog's libraries say of a batch of
// profiles.
type datadogEvent struct {
	Start  string `json:"start"`
	End    string `json:"end"`
	Tags   string `json:"tags_profiler"`
	Family string `json:"family"` // the language
}

// datadogAttributes are the tags that OpenTelemetry has another name for.
var datadogAttributes = map[string]string{
	"service":            ingest.AttributeServiceName,
	"env":                "deployment.environment.name",
	"version":            "service.version",
	"host":               "host.name",
	"runtime-id":         ingest.AttributeServiceInstanceID,
	"language":           "telemetry.sdk.language",
	"process_id":         attributeProcessPID,
	"runtime":            "process.runtime.name",
	"runtime_version":    "process.runtime.version",
	"runtime_arch":       "host.arch",
	"runtime_os":         "os.type",
	"git.commit.sha":     "vcs.ref.head.revision",
	"git.repository_url": "vcs.repository.url.full",
}

// tagSequence counts the batches of a process. On the resource it would make each
// batch one of another process.
const tagSequence = "profile_seq"

// datadogLabels are the labels of samples that OpenTelemetry has another name for.
// Those of traces and times are known to the translator.
var datadogLabels = map[string]string{
	"thread id":   "thread.id",
	"thread name": "thread.name",
}

// datadog handles POST /profiling/v1/input, what Datadog's libraries send to their
// agent: a form with the part event and an attachment for each profile.
func (s *server) datadog(w http.ResponseWriter, r *http.Request) error {
	held := s.budget.Reserve()
	defer held.Release()
	parts, err := s.readForm(r, held, func(name, file string) bool {
		return name == partEvent || isPprofFile(fileOf(name, file))
	})
	if err != nil {
		return err
	}
	var (
		event    *part
		profiles []part
		skipped  = map[string]int{}
	)
	for i := range parts {
		p := &parts[i]
		switch {
		case p.name == partEvent && event == nil:
			event = p
		case isPprofFile(fileOf(p.name, p.file)):
			profiles = append(profiles, *p)
		default:
			skipped[kindOfSkipped(fileOf(p.name, p.file))]++
		}
	}
	if event == nil {
		return badRequest("body: there is no part named event")
	}
	if len(profiles) == 0 && skipped[skippedJFR] > 0 {
		return unsupported("body: a JFR recording and no pprof profile, which is all that is supported")
	}
	if len(profiles) > maxAttachments {
		return &pproftranslator.LimitError{What: "body: profiles", Limit: maxAttachments, Got: int64(len(profiles))}
	}
	document, err := event.document()
	if err != nil {
		return err
	}
	batch, err := s.readDatadogEvent(document)
	if err != nil {
		return fmt.Errorf("body: part \"event\": %w", err)
	}
	attachments := make([]attachment, len(profiles))
	for i, p := range profiles {
		file := fileOf(p.name, p.file)
		attachments[i] = attachment{name: fmt.Sprintf("attachment %.200q", file), body: p.body, payload: batch.arrival(file)}
	}
	if err := s.acceptAll(r.Context(), datadogPath, attachments, held); err != nil {
		return err
	}
	for what, parts := range skipped {
		s.skip(r.Context(), datadogPath, what, parts)
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// datadogBatch is what the profiles of one request have in common.
type datadogBatch struct {
	resource pcommon.Map
	span     ingest.TimeRange
}

func (s *server) readDatadogEvent(document []byte) (batch datadogBatch, err error) {
	var event datadogEvent
	if err := json.Unmarshal(document, &event); err != nil {
		return batch, badRequest("not the JSON that is wanted: " + jsonError(err))
	}
	if batch.span.Start, err = parseDatadogTime(event.Start); err != nil {
		return batch, badRequest("start: " + err.Error())
	}
	if batch.span.End, err = parseDatadogTime(event.End); err != nil {
		return batch, badRequest("end: " + err.Error())
	}
	if err := tooManyAttributes("tags_profiler", 1+strings.Count(event.Tags, ",")); err != nil {
		return batch, err
	}
	attributes := map[string]string{}
	for tag := range strings.SplitSeq(event.Tags, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(tag), ":")
		if name == "" || name == tagSequence {
			continue
		}
		if known := datadogAttributes[name]; known != "" {
			name = known
		}
		if err := tooLongAttribute("tags_profiler", name, value); err != nil {
			return batch, err
		}
		attributes[name] = value // of several the last, which the library itself adds
	}
	if err := tooLongAttribute("field", "family", event.Family); err != nil {
		return batch, err
	}
	if language := "telemetry.sdk.language"; event.Family != "" && attributes[language] == "" {
		attributes[language] = event.Family
	}
	batch.resource = s.resourceOf(attributes)
	if pid, err := strconv.ParseInt(attributes[attributeProcessPID], 10, 64); err == nil {
		batch.resource.PutInt(attributeProcessPID, pid)
	}
	return batch, nil
}

func parseDatadogTime(text string) (pcommon.Timestamp, error) {
	if text == "" {
		return 0, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Year() < 1970 || at.Year() > 2261 {
		return 0, fmt.Errorf("not a time, want one as in %s", time.RFC3339)
	}
	return pcommon.NewTimestampFromTime(at), nil
}

const (
	suffixPprof = ".pprof"
	prefixDelta = "delta-"
)

// fileOf is the name of an attachment: its file, or the part where that has none.
// What it is compressed with shows in its first bytes too.
func fileOf(name, file string) string {
	if file == "" {
		file = name
	}
	for _, suffix := range []string{".gz", ".zst", ".lz4"} {
		file = strings.TrimSuffix(file, suffix)
	}
	return file
}

func isPprofFile(file string) bool { return strings.HasSuffix(file, suffixPprof) }

// kindOfSkipped is what telemetry calls an attachment that is no pprof.
func kindOfSkipped(file string) string {
	switch path.Ext(file) {
	case ".jfr":
		return skippedJFR
	case ".trace":
		return skippedTrace
	}
	if file == "metrics.json" {
		return skippedMetrics
	}
	return skippedOther
}

// arrival tells kind and temporality by the name of the file, as in
// delta-heap.pprof. A library that profiles everything at once calls it auto.
func (b *datadogBatch) arrival(file string) ingest.Payload {
	kind, delta := strings.CutPrefix(strings.TrimSuffix(file, suffixPprof), prefixDelta)
	a := ingest.Payload{Resource: b.resource, TimeRange: b.span, AttributeNames: datadogLabels}
	switch kind {
	case "goroutines":
		a.ProfileType = ingest.ProfileTypeGoroutine
	case "space": // of Node.js: what the heap holds
		a.ProfileType = ingest.ProfileTypeHeap
		a.Temporality = ingest.Always(ingest.TemporalityInstant)
		return a
	case "auto", "profile", "rubyprofile":
		a.Temporality = datadogTemporality
		return a
	default:
		a.ProfileType = strings.ToValidUTF8(kind, "\ufffd")
	}
	a.Temporality = ingest.GoTemporality(a.ProfileType, delta)
	if a.Temporality == nil && delta {
		a.Temporality = ingest.Always(ingest.TemporalityDelta)
	}
	return a
}

// datadogTemporality is that of the sample types of profiles that hold everything:
// what is alive is a state, and the rest speaks for itself by its duration.
func datadogTemporality(sampleType string) ingest.Temporality {
	if ingest.IsInUse(sampleType) || strings.HasPrefix(sampleType, "heap-") {
		return ingest.TemporalityInstant
	}
	return ingest.TemporalityUnknown
}
