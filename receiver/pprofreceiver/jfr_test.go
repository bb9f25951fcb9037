// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/jfrwriter"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
)

// jfrRecording is one of async-profiler, without settings: three CPU samples of the context 7, and a
// wait for a monitor.
func jfrRecording() []byte {
	c := jfrwriter.New()
	c.Class("profiler.types.LogLevel", jfrwriter.Text("name"))
	c.Class("jdk.ExecutionSample", jfrwriter.StartTime, jfrwriter.Sampled, jfrwriter.Stack, jfrwriter.State, jfrwriter.Long("contextId"))
	c.Class("jdk.JavaMonitorEnter", jfrwriter.StartTime, jfrwriter.Duration, jfrwriter.Thread, jfrwriter.Stack)
	c.Constant("jdk.types.FrameType", 1, "JIT compiled")
	c.Method(1, "shop/Cart", "total", "()V")
	c.StackTrace(1, jfrwriter.Frame{Method: 1, Line: 5, Type: 1})
	for i := range 3 {
		c.Event("jdk.ExecutionSample", 1000+i, 0, 1, 0, 7)
	}
	c.Event("jdk.JavaMonitorEnter", 1000, 500, 0, 1)
	return c.Bytes()
}

// jfrLabels is LabelsSnapshot{contexts: {7: {labels: {1: 2}}}, strings: {1: "region", 2: "eu"}}.
const jfrLabels = "\x0a\x0a\x08\x07\x12\x06\x0a\x04\x08\x01\x10\x02" + "\x12\x0a\x08\x01\x12\x06region" + "\x12\x06\x08\x02\x12\x02eu"

// summary returns the sum of values and the labels, by profile type and sample type. Each sample has timestamps, and waits say
// what they mark.
func summary(t *testing.T, pd pprofile.Profiles) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, p := range profiletest.Expand(t, pd) {
		key := expand.Text(p.Scope.Attributes, attrkey.ProfileType) + " " + p.Type
		for _, s := range p.Samples {
			all[key] += s.Sum.String()
			assert.NotEmpty(t, s.Points, "timestamps are kept by default")
			if isWait := expand.Text(p.Scope.Attributes, attrkey.ProfileType) == "mutex"; isWait {
				assert.Equal(t, timing.MarksEnd, expand.Text(s.Attributes, timing.TimestampMarksAttribute))
				continue
			}
			for _, a := range s.Attributes {
				all[key] += " " + a.String()
			}
		}
		assert.NotEmpty(t, p.ProfileID)
		assert.Equal(t, "cart", expand.Text(p.Resource.Attributes, "service.name"))
	}
	return all
}

func TestRecordingsOfJVMsByEveryWayIn_J4(t *testing.T) {
	recording, labels := jfrRecording(), []byte(jfrLabels)
	plain := map[string]string{"cpu samples": "3", "mutex contentions": "1", "mutex delay": "500"}
	rated := map[string]string{"cpu samples": "3", "cpu cpu": "30000000", "mutex contentions": "1", "mutex delay": "500"}
	labelled := map[string]string{
		"cpu samples": `3 "region"=string("eu") ""`, "cpu cpu": `30000000 "region"=string("eu") ""`, "mutex contentions": "1", "mutex delay": "500",
	}
	const ingestQuery = httpserver.IngestPath + "?name=cart&from=1700000000&until=1700000010&sampleRate=100"
	tags := event(`{"tags_profiler":"service:cart","family":"java","version":"4"}`)
	for name, test := range map[string]struct {
		path  string
		body  []byte
		parts []formPart
		want  map[string]string
	}{
		"v1/pprof":                {"/v1/pprof?service.name=cart", recording, nil, plain},
		"ingest":                  {ingestQuery + "&format=jfr", recording, nil, rated},
		"ingest, form":            {ingestQuery + "&format=jfr", nil, []formPart{part("jfr", "jfr", recording), part("labels", "labels", labels)}, labelled},
		"ingest, form, gzip":      {ingestQuery + "&format=jfr", nil, []formPart{part("jfr", "", profiletest.Gzip(t, recording)), part("labels", "", profiletest.Gzip(t, labels))}, labelled},
		"ingest, form, no labels": {ingestQuery + "&format=jfr", nil, []formPart{part("jfr", "", recording)}, rated},
		"datadog":                 {httpserver.DatadogPath, nil, []formPart{attached("main.jfr", recording), tags}, plain},
		"datadog, lz4":            {httpserver.DatadogPath, nil, []formPart{attached("main.jfr", profiletest.LZ4(t, recording)), tags}, plain},
	} {
		t.Run(name, func(t *testing.T) {
			pd := passedOn(t, "", func(b *testReceiver) answer {
				if test.parts != nil {
					return b.sendForm(test.path, test.parts...)
				}
				return b.post(test.path, test.body)
			})
			assert.Equal(t, test.want, summary(t, pd))
		})
	}
}
