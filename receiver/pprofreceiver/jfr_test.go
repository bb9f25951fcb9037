// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"

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

// summary returns the sum of values and the labels, by profile type and sample type.
func summary(t *testing.T, pd pprofile.Profiles) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, p := range profiletest.Expand(t, pd) {
		key := expand.Text(p.Scope.Attributes, "profile.type") + " " + p.Type
		for _, s := range p.Samples {
			all[key] += s.Sum.String()
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

// A chunk is read once, when its JVM has finished it, or long after the JVM was killed.
func TestRecordingsOfJVMsThatStillWriteAreReadOnce_J3(t *testing.T) {
	directory := t.TempDir()
	finished := jfrRecording()
	second := bytes.Clone(finished)
	second[39]++ // the start of the chunk: a repeated one is left out
	unfinished, open := bytes.Clone(finished), bytes.Clone(second)
	unfinished[64] = 1                          // as the JVM marks it
	binary.BigEndian.PutUint64(open[8:], 1<<30) // as async-profiler does
	for name, content := range map[string][]byte{"jvm.jfr": unfinished, "async.jfr": open, "after.jfr": append(bytes.Clone(finished), open...), "header.jfr": append(bytes.Clone(finished), open[:67]...)} {
		profiletest.WriteAt(t, filepath.Join(directory, name), content, time.Now().Add(-time.Second))
	}
	profiletest.WriteAt(t, filepath.Join(directory, "killed.jfr"), unfinished, time.Now().Add(-time.Hour))
	profiletest.WriteAt(t, filepath.Join(directory, "set-back.jfr"), append(bytes.Clone(unfinished), 0), time.Now().Add(time.Hour)) // as if the clock was set back
	next := &sink{t: t}
	b := newTestReceiver(t, "resource_attributes: {service.name: cart}\nfile: {include: ['"+directory+"/*.jfr'], poll_interval: 10ms}", next)
	b.files.Poll(t.Context())
	time.Sleep(20 * time.Millisecond)
	b.files.Poll(t.Context()) // the file of the future has not changed
	assert.Len(t, next.AllProfiles(), 2)
	two := append(bytes.Clone(finished), second...)
	for name, content := range map[string][]byte{"jvm.jfr": finished, "async.jfr": finished, "after.jfr": two, "header.jfr": two} {
		path := filepath.Join(directory, name)
		profiletest.WriteAt(t, path+".tmp", content, time.Now().Add(-time.Second))
		require.NoError(t, os.Rename(path+".tmp", path))
	}
	b.files.Poll(t.Context())
	b.files.Poll(t.Context())
	assert.Len(t, next.AllProfiles(), 2+1+1+2+2)
	assert.Equal(t, map[string]int64{"success": 6}, b.fileOutcomes())
}

// Each chunk of a file is a payload. If the pipeline rejects one temporarily, it is retried without
// those before it. A chunk that is damaged or rejected permanently does not affect the others.
func TestRecordingsOfJVMsInFilesArePassedChunkByChunk_R17(t *testing.T) {
	chunk := func(start int64) *jfrwriter.Chunk {
		c := jfrwriter.New()
		c.Start = start * 1e18
		c.Class("jdk.ThreadPark", jfrwriter.StartTime, jfrwriter.Duration, jfrwriter.Thread, jfrwriter.Stack)
		c.Event("jdk.ThreadPark", 1000, 5, 0, 0)
		return c
	}
	damaged := chunk(2)
	damaged.Raw([]byte{0})
	var recording []byte
	for _, c := range []*jfrwriter.Chunk{chunk(1), damaged, chunk(3), chunk(4), chunk(5)} {
		recording = append(recording, c.Bytes()...)
	}
	synctest.Test(t, func(t *testing.T) {
		directory := t.TempDir()
		profiletest.WriteAt(t, filepath.Join(directory, "cart.jfr"), recording, time.Now().Add(-time.Hour))
		next := &sink{t: t}
		var times []uint64
		rejections := 2
		b := newTestReceiver(t, "resource_attributes: {service.name: cart}\nfile: {include: ['"+directory+"/*.jfr'], max_decompressed_size: "+
			strconv.Itoa(len(damaged.Bytes()))+"}", consumer(t, func(ctx context.Context, pd pprofile.Profiles) error {
			at := uint64(pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Time()) / 1e18
			if at == 3 && rejections > 0 {
				rejections--
				return errors.New("later")
			}
			times = append(times, at)
			if at == 4 {
				return consumererror.NewPermanent(&fs.PathError{Op: "write", Path: "output", Err: fs.ErrPermission}) // not of the recording
			}
			return next.ConsumeProfiles(ctx, pd)
		}))
		for range 4 {
			b.files.Poll(t.Context())
			time.Sleep(time.Minute)
		}
		assert.Equal(t, map[string]int64{"malformed": 1}, b.fileOutcomes())
		assert.Len(t, next.AllProfiles(), 3)
		assert.Equal(t, []uint64{1, 3, 4, 5}, times)
		assert.Zero(t, rejections)
		for _, span := range b.telemetry.SpanRecorder.Ended() {
			assert.NotContains(t, span.Status().Description, "EOF")
		}
	})
}
