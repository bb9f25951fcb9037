// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingconnector

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/connector/splunkprofilingconnector/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

const (
	traceID = "0102030405060708090a0b0c0d0e0f10"
	spanID  = "00000000000000a1"
)

// at is when the samples of tests were taken, in milliseconds since 1970.
var at = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC).UnixMilli()

// harness is a connector in front of a consumer that answers with err.
type harness struct {
	t         *testing.T
	connector *splunkConnector
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
	mu        sync.Mutex
	received  []pprofile.Profiles
	err       error
}

func newHarness(t *testing.T, change func(*Config)) *harness {
	t.Helper()
	h := &harness{t: t}
	next, err := xconsumer.NewProfiles(func(_ context.Context, pd pprofile.Profiles) error {
		profiletest.RequireConforms(t, pd)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.err == nil {
			h.received = append(h.received, pd)
		}
		return h.err
	}, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	require.NoError(t, err)
	set := connectortest.NewNopSettings(metadata.Type)
	set.ID = component.NewIDWithName(metadata.Type, "test")
	set.TelemetrySettings, h.telemetry, h.logs = profiletest.Observe(t)
	config := createDefaultConfig().(*Config)
	config.MaxInFlight = 256 << 20
	if change != nil {
		change(config)
	}
	require.NoError(t, config.Validate())
	h.connector, err = newConnector(set, config, budget.New(int64(config.MaxInFlight)), next)
	require.NoError(t, err)
	require.NoError(t, h.connector.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, h.connector.Shutdown(context.Background())) })
	return h
}

// outcomes are the records by outcome so far.
func (h *harness) outcomes() map[string]int64 {
	return profiletest.MetricsBy(h.t, h.telemetry, "otelcol_connector_splunk_profiling_records", "outcome")[""]
}

// expanded are the received Profiles by sample type.
func (h *harness) expanded() map[string][]expand.Profile {
	all := map[string][]expand.Profile{}
	for _, p := range profiletest.Expand(h.t, h.received...) {
		all[p.Type+"/"+p.Unit] = append(all[p.Type+"/"+p.Unit], p)
	}
	return all
}

// logs returns a request of a service as Splunk's agents send it.
func logs(service string, records ...func(plog.LogRecord)) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", service)
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName("otel.profiling")
	sl.Scope().SetVersion("0.1.0")
	for _, set := range records {
		set(sl.LogRecords().AppendEmpty())
	}
	return ld
}

// pprofRecord is a record with this body.
func pprofRecord(dataType, body string, attributes ...string) func(plog.LogRecord) {
	return func(r plog.LogRecord) {
		r.Body().SetStr(body)
		r.Attributes().PutStr("com.splunk.sourcetype", "otel.profiling")
		r.Attributes().PutStr("profiling.data.format", "pprof-gzip-base64")
		r.Attributes().PutStr("profiling.data.type", dataType)
		r.Attributes().PutInt("profiling.data.total.frame.count", 3)
		for i := 0; i < len(attributes); i += 2 {
			r.Attributes().PutStr(attributes[i], attributes[i+1])
		}
	}
}

func textRecord(stack string, set ...func(plog.LogRecord)) func(plog.LogRecord) {
	return func(r plog.LogRecord) {
		r.SetTimestamp(pcommon.Timestamp(at * 1e6))
		r.Body().SetStr(stack)
		r.Attributes().PutStr("com.splunk.sourcetype", "otel.profiling")
		r.Attributes().PutInt("source.event.period", 10000)
		for _, s := range set {
			s(r)
		}
	}
}

// gzipped is a body. google/pprof writes it without checking it.
func gzipped(t *testing.T, p *profile.Profile) string {
	t.Helper()
	return base64.StdEncoding.EncodeToString(profiletest.Gzip(t, profiletest.Pprof(t, p)))
}

// stacks are the stacks of a profile without sample types: main called by start, and start.
func stacks() (leaf, root *profile.Sample, p *profile.Profile) {
	main := &profile.Function{ID: 1, Name: "App.main", Filename: "App.java"}
	start := &profile.Function{ID: 2, Name: "App.start", Filename: "App.java"}
	p = &profile.Profile{
		Function: []*profile.Function{main, start},
		Location: []*profile.Location{{ID: 1, Line: []profile.Line{{Function: main, Line: 7}}}, {ID: 2, Line: []profile.Line{{Function: start, Line: -1}}}},
	}
	leaf = &profile.Sample{Location: []*profile.Location{p.Location[0], p.Location[1]}}
	root = &profile.Sample{Location: p.Location[1:]}
	p.Sample = []*profile.Sample{leaf, root}
	return leaf, root, p
}

// javaCPU is a body as splunk-otel-java's PprofCpuEventExporter writes it.
func javaCPU(t *testing.T) string {
	leaf, root, p := stacks()
	for i, s := range []*profile.Sample{leaf, root} {
		s.Label = map[string][]string{"thread.name": {"worker"}, "thread.state": {[]string{"RUNNABLE", "WAITING"}[i]}, "source.event.name": {"jdk.ThreadDump"}}
		s.NumLabel = map[string][]int64{"thread.id": {12}, "source.event.period": {10000}, "source.event.time": {at + int64(i)*10000}}
	}
	leaf.Label["trace_id"], leaf.Label["span_id"] = []string{traceID}, []string{spanID}
	root.Label["thread.stack.truncated"] = []string{"true"}
	return gzipped(t, p)
}

func TestSamplesWithoutTypesAreWallTime(t *testing.T) {
	h := newHarness(t, nil)
	require.NoError(t, h.connector.ConsumeLogs(t.Context(), logs("shop", pprofRecord("cpu", javaCPU(t), "profiling.instrumentation.source", "continuous"))))
	assert.Equal(t, map[string]int64{"accepted": 1}, h.outcomes())
	all := h.expanded()
	require.Len(t, all, 2)
	for name, value := range map[string]int64{"samples/count": 1, "wall/nanoseconds": 10e9} {
		require.Len(t, all[name], 1, name)
		p := all[name][0]
		assert.Equal(t, "wall", expand.Value(p.Scope.Attributes, attrkey.ProfileType))
		assert.Equal(t, "shop", expand.Value(p.Resource.Attributes, "service.name"))
		assert.Equal(t, "continuous", expand.Value(p.Attributes, "profiling.instrumentation.source"))
		assert.EqualValues(t, at*1e6, p.Time)
		assert.Equal(t, uint64(20*time.Second), p.Duration, "from the first sample to one period after the last")
		assert.Equal(t, "wall/nanoseconds", p.PeriodType+"/"+p.PeriodUnit)
		assert.Equal(t, int64(10*time.Second), p.Period)
		require.Len(t, p.Samples, 2)
		leaf := p.Samples[0]
		assert.Equal(t, value, leaf.Sum.Int64())
		assert.EqualValues(t, at*1e6, leaf.Points[0].Timestamp)
		assert.Equal(t, traceID+"/"+spanID, leaf.Link)
		assert.Equal(t, "App.main", leaf.Stack[0].Lines[0].Function)
		assert.Equal(t, "RUNNABLE", expand.Value(leaf.Attributes, "thread.state"))
		assert.EqualValues(t, 12, expand.Value(leaf.Attributes, "thread.id"))
		assert.Nil(t, expand.Value(leaf.Attributes, "source.event.time"))
		assert.Nil(t, expand.Value(leaf.Attributes, "source.event.period"))
		assert.Equal(t, "true", expand.Value(p.Samples[1].Attributes, "thread.stack.truncated"))
	}
}

func TestWithoutTimestampsEqualSamplesAreSummed(t *testing.T) {
	h := newHarness(t, func(c *Config) { c.Timestamps = false })
	p := cpuWithoutTypes(slices.Repeat([]int64{1000}, 5)...)
	require.NoError(t, h.connector.ConsumeLogs(t.Context(), logs("shop", pprofRecord("cpu", gzipped(t, p)))))
	wall := h.expanded()["wall/nanoseconds"]
	require.Len(t, wall, 1)
	require.Len(t, wall[0].Samples, 1)
	assert.Equal(t, int64(5*time.Second), wall[0].Samples[0].Sum.Int64())
	assert.Equal(t, expand.ShapeValues, wall[0].Shape)
	assert.Equal(t, uint64(1e18), wall[0].Time)
	assert.Equal(t, uint64(1004*time.Millisecond), wall[0].Duration)
}

// splunk-otel-python prints IDs without their leading zeros.
func TestShortIDsMakeLinks(t *testing.T) {
	h := newHarness(t, nil)
	leaf, root, p := stacks()
	leaf.Label = map[string][]string{"trace_id": {"5060708090a0b0c0d0e0f10"}, "span_id": {"000000a1"}}
	root.Label = map[string][]string{"trace_id": {"none"}, "span_id": {"a1"}}
	for _, s := range p.Sample {
		s.NumLabel = map[string][]int64{"thread.id": {140000000000000}, "source.event.period": {1000}, "source.event.time": {at}}
	}
	require.NoError(t, h.connector.ConsumeLogs(t.Context(), logs("py", pprofRecord("cpu", gzipped(t, p)))))
	samples := h.expanded()["samples/count"][0].Samples
	assert.Equal(t, "000000000"+"5060708090a0b0c0d0e0f10/"+spanID, samples[0].Link)
	assert.Empty(t, samples[1].Link)
	assert.Equal(t, "none", expand.Value(samples[1].Attributes, "trace_id"))
}

func TestAllocationsKeepTheirValues(t *testing.T) {
	h := newHarness(t, nil)
	leaf, root, p := stacks()
	p.SampleType = []*profile.ValueType{{Type: "allocationSize", Unit: "bytes"}}
	leaf.Value, root.Value = []int64{4096}, []int64{24}
	for _, s := range p.Sample {
		s.Label = map[string][]string{"thread.state": {"RUNNABLE"}, "source.event.name": {"jdk.ObjectAllocationSample"}}
		s.NumLabel = map[string][]int64{"source.event.time": {at}, "thread.os.id": {99}}
	}
	require.NoError(t, h.connector.ConsumeLogs(t.Context(), logs("shop", pprofRecord("allocation", gzipped(t, p)))))
	all := h.expanded()
	require.Len(t, all, 1)
	bytes := all["allocationSize/bytes"][0]
	assert.Equal(t, "alloc", expand.Value(bytes.Scope.Attributes, attrkey.ProfileType))
	assert.EqualValues(t, 4096, bytes.Samples[0].Sum.Int64())
	assert.EqualValues(t, 24, bytes.Samples[1].Sum.Int64())
	assert.EqualValues(t, at*1e6, bytes.Time)
	assert.Equal(t, uint64(time.Millisecond), bytes.Duration, "the millisecond of the samples")
}

const javaStack = `"pool-1 "x" y" #49 prio=5 os_prio=31 cpu=0.12ms elapsed=8.50s tid=0x00007fde4d00c000 nid=0xba03 waiting on condition  [0x000070000ba40000]
   java.lang.Thread.State: TIMED_WAITING (sleeping)
	at java.lang.Thread.sleep(java.base@17/Native Method)
	- locked <0x000000> (a java.lang.Object)
	at com.example.Shop.lambda$run$0(Shop.java:42)

	at C.f(C:\src\c.cs:12 col:7)
	at unknown.unknown(unknown)
`

func TestCallStacksOfAScopeShareAProfile(t *testing.T) {
	h := newHarness(t, nil)
	link := func(r plog.LogRecord) {
		r.SetTraceID([16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
		r.SetSpanID([8]byte{7: 0xa1})
		r.Attributes().PutStr("source.event.name", "jdk.ThreadDump")
	}
	allocation := func(r plog.LogRecord) { r.Attributes().PutInt("memory.allocated", 160) }
	require.NoError(t, h.connector.ConsumeLogs(t.Context(), logs("shop",
		textRecord(javaStack, link), textRecord("\n\nat a.b(c.js:3:9)\n"), textRecord("at a.b(c.js:3)", allocation))))
	assert.Equal(t, map[string]int64{"accepted": 3}, h.outcomes())
	all := h.expanded()
	require.Len(t, all["wall/nanoseconds"], 1)
	wall := all["wall/nanoseconds"][0]
	require.Len(t, wall.Samples, 2)
	first := wall.Samples[0]
	assert.Equal(t, int64(10*time.Second), first.Sum.Int64())
	assert.Equal(t, traceID+"/"+spanID, first.Link)
	assert.Equal(t, `pool-1 "x" y`, expand.Value(first.Attributes, "thread.name"))
	assert.EqualValues(t, 49, expand.Value(first.Attributes, "thread.id"))
	assert.EqualValues(t, 0xba03, expand.Value(first.Attributes, "thread.os.id"))
	assert.Equal(t, "TIMED_WAITING", expand.Value(first.Attributes, "thread.state"))
	assert.Equal(t, "jdk.ThreadDump", expand.Value(first.Attributes, "source.event.name"))
	assert.EqualValues(t, 6, wall.DroppedAttributes, "prio, os_prio, cpu, elapsed, tid and the status")
	var frames []string
	for _, f := range first.Stack {
		frames = append(frames, fmt.Sprintf("%s %s:%d:%d", f.Lines[0].Function, f.Lines[0].Filename, f.Lines[0].Line, f.Lines[0].Column))
	}
	assert.Equal(t, []string{"java.lang.Thread.sleep java.base@17/Native Method:0:0", "com.example.Shop.lambda$run$0 Shop.java:42:0", `C.f C:\src\c.cs:12:7`, "unknown.unknown :0:0"}, frames)
	assert.Equal(t, "c.js", wall.Samples[1].Stack[0].Lines[0].Filename)
	assert.EqualValues(t, 3, wall.Samples[1].Stack[0].Lines[0].Line)

	require.Len(t, all["allocationSize/bytes"], 1)
	assert.EqualValues(t, 160, all["allocationSize/bytes"][0].Samples[0].Sum.Int64())
	assert.Equal(t, "alloc", expand.Value(all["allocationSize/bytes"][0].Scope.Attributes, attrkey.ProfileType))
}

func TestOneBadRecordIsRejectedAlone_J5(t *testing.T) {
	h := newHarness(t, func(c *Config) { c.MaxDecompressedSize = 1 << 20 })
	ld := logs("shop",
		pprofRecord("cpu", "this is not base64"),
		pprofRecord("cpu", base64.StdEncoding.EncodeToString([]byte("not gzip"))),
		pprofRecord("cpu", base64.StdEncoding.EncodeToString(profiletest.Gzip(t, []byte("not pprof")))),
		pprofRecord("cpu", base64.StdEncoding.EncodeToString(profiletest.Gzip(t, make([]byte, 2<<20)))),
		pprofRecord("threads", javaCPU(t)),
		pprofRecord("cpu", javaCPU(t), "profiling.data.format", "jfr"),
		textRecord(`"main" #1`),
		textRecord("\n\n\tat java.lang.Thread.sl"),
		func(r plog.LogRecord) { pprofRecord("cpu", "")(r); r.Body().SetInt(3) },
		pprofRecord("cpu", javaCPU(t)),
		textRecord("at a.b(c:1)"))
	ld.ResourceLogs().At(0).ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("GET /")
	require.NoError(t, h.connector.ConsumeLogs(t.Context(), ld))
	assert.Equal(t, map[string]int64{"malformed": 6, "unsupported": 2, "too_large": 1, "accepted": 2, "not_profiling": 1}, h.outcomes())
	assert.Len(t, h.received, 2)
	rejected := h.logs.FilterMessage("Rejected profiling log records").All()
	assert.Len(t, rejected, 9)
	for _, entry := range rejected {
		assert.Equal(t, "shop", entry.ContextMap()["service"])
	}
	assert.Zero(t, h.connector.inFlight.InUse())
	profiletest.Injected(t, "9 bad records")
}

func TestRetryableErrorsComeFirst(t *testing.T) {
	h := newHarness(t, nil)
	request := logs("shop", pprofRecord("cpu", javaCPU(t)), pprofRecord("cpu", javaCPU(t)), textRecord("at a.b(c:1)"))
	away, wrong := errors.New("away"), consumererror.NewPermanent(errors.New("wrong"))
	for _, h.err = range []error{away, errors.Join(wrong, away)} {
		err := h.connector.ConsumeLogs(t.Context(), request)
		require.ErrorContains(t, err, "away")
		assert.False(t, consumererror.IsPermanent(err))
	}
	h.err = wrong
	assert.True(t, consumererror.IsPermanent(h.connector.ConsumeLogs(t.Context(), request)))
	assert.Equal(t, map[string]int64{"retryable": 6, "rejected": 3}, h.outcomes())

	h.err = nil
	require.NoError(t, h.connector.ConsumeLogs(t.Context(), request))
	first := profileIDs(h.received)
	h.received = nil
	require.NoError(t, h.connector.ConsumeLogs(t.Context(), request))
	assert.ElementsMatch(t, first, profileIDs(h.received), "a request that is sent again has the same IDs")
	assert.Len(t, distinct(first), len(first), "equal records of a request are several profiles")
}

func TestMemoryThatOthersHoldIsRetryable(t *testing.T) {
	h := newHarness(t, nil)
	others := h.connector.inFlight.Lease(0)
	defer others.Release()
	require.NoError(t, others.Take(others.MaxWork()))
	err := h.connector.ConsumeLogs(t.Context(), logs("shop", pprofRecord("cpu", javaCPU(t)), textRecord(`"main" #1`)))
	require.ErrorIs(t, err, budget.ErrFull)
	assert.False(t, consumererror.IsPermanent(err))
	assert.Equal(t, map[string]int64{"retryable": 2}, h.outcomes())
}

func profileIDs(all []pprofile.Profiles) (ids []string) {
	for _, pd := range all {
		for p := range sampletypes.ProfilesOf(pd) {
			ids = append(ids, p.ProfileID().String())
		}
	}
	return ids
}

func distinct(ids []string) []string { return slices.Compact(slices.Sorted(slices.Values(ids))) }

// A request may need more memory than one may have: then its records are passed on in several
// parts, and equal records still have IDs of their own.
func TestLargeRequestsAreSplit(t *testing.T) {
	h := newHarness(t, func(c *Config) { c.MaxInFlight = 8 << 20 })
	body := gzipped(t, cpuWithoutTypes(slices.Repeat([]int64{1000}, 2000)...))
	records := slices.Repeat([]func(plog.LogRecord){pprofRecord("cpu", body)}, 20)
	require.NoError(t, h.connector.ConsumeLogs(t.Context(), logs("shop", records...)))
	assert.Equal(t, map[string]int64{"accepted": 20}, h.outcomes())
	total := int64(0)
	for _, p := range h.expanded()["samples/count"] {
		for _, s := range p.Samples {
			total += s.Sum.Int64()
		}
	}
	assert.EqualValues(t, 20*2000, total)
	assert.Len(t, distinct(profileIDs(h.received)), 40)
	assert.Zero(t, h.connector.inFlight.InUse())
}

func TestManyCallStacksBecomeSeveralProfiles(t *testing.T) {
	h := newHarness(t, func(c *Config) { c.MaxInFlight = 16 << 20 })
	var records []func(plog.LogRecord)
	for i := range 2000 {
		records = append(records, textRecord("\n\n"+strings.Repeat(fmt.Sprintf("at pkg.f%d(file.go:%d)\n", i%50, i), 20)))
	}
	require.NoError(t, h.connector.ConsumeLogs(t.Context(), logs("shop", records...)))
	assert.Equal(t, map[string]int64{"accepted": 2000}, h.outcomes())
	assert.Greater(t, len(h.received), 1)
}
