// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/jfrwriter"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
)

// java returns a chunk with a stack 1 of two Java methods, a stack 2 of native code, a thread 1
// of Java, a thread 2 of none, and two states.
func java() *jfrwriter.Chunk {
	c := jfrwriter.New()
	for id, name := range []string{"Interpreted", "JIT compiled", "Inlined", "Native", "C++", "Kernel"} {
		c.Constant("jdk.types.FrameType", uint64(id), name)
	}
	c.Method(1, "java/lang/Thread", "run", "()V")
	c.Method(2, "shop/Cart", "total", "(I)J")
	c.Method(3, "libc.so.6", "read", "()L;")
	c.Method(4, "", "start_thread", "()L;")
	c.Method(5, "[kernel]", "vfs_read", "()L;")
	c.Method(6, "java/net/Socket", "read0", "()I")
	c.StackTrace(1, jfrwriter.Frame{Method: 2, Line: 42, Type: 2}, jfrwriter.Frame{Method: 1, Line: 9, Type: 1})
	c.StackTrace(2, jfrwriter.Frame{Method: 5, Type: 5}, jfrwriter.Frame{Method: 3, Type: 3}, jfrwriter.Frame{Method: 6, Line: 3, Type: 3}, jfrwriter.Frame{Method: 4, Type: 3})
	c.Constant("java.lang.Thread", 0, "os-zero", 100, "zero", 9)
	c.Constant("java.lang.Thread", 1, "os-main", 100, "main", 1)
	c.Constant("java.lang.Thread", 2, "GC Thread", 200, jfrwriter.Null, 0)
	c.Constant("jdk.types.ThreadState", 0, "STATE_NEW")
	c.Constant("jdk.types.ThreadState", 1, "STATE_DEFAULT")
	c.Constant("jdk.types.ThreadState", 2, "STATE_SLEEPING")
	return c
}

// executionSample is jdk.ExecutionSample of the JDK and of async-profiler.
func executionSample(c *jfrwriter.Chunk, more ...jfrwriter.Field) {
	c.Class("jdk.ExecutionSample", append([]jfrwriter.Field{jfrwriter.StartTime, jfrwriter.Sampled, jfrwriter.Stack, jfrwriter.State}, more...)...)
}

// async makes c a chunk of async-profiler with these settings.
func async(c *jfrwriter.Chunk, settings ...string) *jfrwriter.Chunk {
	c.Class("profiler.types.LogLevel", jfrwriter.Text("name"))
	c.Class("jdk.ActiveSetting", jfrwriter.StartTime, jfrwriter.Long("id"),
		jfrwriter.Text("name"), jfrwriter.Text("value"))
	for i := 0; i < len(settings); i += 2 {
		c.Event("jdk.ActiveSetting", 1000, 1, settings[i], settings[i+1])
	}
	return c
}

// cpu returns a small chunk of async-profiler.
func cpu() *jfrwriter.Chunk {
	c := async(java(), "event", "cpu", "interval", "10000000")
	executionSample(c)
	for i := range 3 {
		c.Event("jdk.ExecutionSample", 1000+i, 1, 1, 1)
	}
	c.Event("jdk.ExecutionSample", 1005, 2, 2, 1)
	return c
}

// recording returns chunks one after the other.
func recording(chunks ...*jfrwriter.Chunk) (data []byte) {
	for _, c := range chunks {
		data = append(data, c.Bytes()...)
	}
	return data
}

// read yields what a Reader makes of each chunk, with at most so many bytes of memory.
func read(data []byte, memory int64) iter.Seq2[pprofile.Profiles, error] {
	return func(yield func(pprofile.Profiles, error) bool) {
		r := (&jfrtranslator.Unmarshaler{}).NewReader(bytes.NewReader(data), int64(len(data)))
		for {
			pd, _, err := r.Next(memory, nil)
			if errors.Is(err, io.EOF) || !yield(pd, err) {
				return
			}
		}
	}
}

// starts returns the times of the first Profile of each scope.
func starts(pd pprofile.Profiles) (times []int64) {
	for _, sp := range pd.ResourceProfiles().At(0).ScopeProfiles().All() {
		times = append(times, int64(sp.Profiles().At(0).Time()))
	}
	return times
}

func unmarshal(t testing.TB, u jfrtranslator.Unmarshaler, chunks ...*jfrwriter.Chunk) (pprofile.Profiles, jfrtranslator.Report) {
	t.Helper()
	pd, report, err := u.UnmarshalWithin(recording(chunks...), math.MaxInt64, nil)
	require.NoError(t, err)
	profiletest.RequireConforms(t, pd)
	return pd, report
}

// show writes profiles out: a line for each Profile and, below it, for each sample.
func show(t testing.TB, pd pprofile.Profiles) string {
	t.Helper()
	var b strings.Builder
	for _, p := range profiletest.Expand(t, pd) {
		fmt.Fprintf(&b, "%s %s/%s", profileType(p), p.Type, p.Unit)
		if p.Period != 0 {
			fmt.Fprintf(&b, " period %d %s/%s", p.Period, p.PeriodType, p.PeriodUnit)
		}
		b.WriteByte('\n')
		var lines []string
		for _, s := range p.Samples {
			var stack, attributes []string
			for _, f := range s.Stack {
				stack = append(stack, f.Lines[0].Function)
			}
			for _, a := range s.Attributes {
				key := strings.Replace(a.Key, attrkey.ThreadState, "thread.state", 1)
				attributes = append(attributes, fmt.Sprintf("%s=%v", key, a.Value))
			}
			sort.Strings(attributes)
			line := fmt.Sprintf("  %s %d", strings.Join(stack, ";"), s.Sum)
			if len(attributes) > 0 {
				line += " " + strings.Join(attributes, " ")
			}
			if s.Link != "" {
				line += " link " + s.Link
			}
			for _, at := range s.Points {
				line += fmt.Sprintf(" @%d:%d", at.Timestamp-p.Time, at.Value)
			}
			lines = append(lines, line)
		}
		sort.Strings(lines)
		b.WriteString(strings.Join(lines, "\n") + "\n")
	}
	return b.String()
}

// totals returns the sum of the values of each Profile.
func totals(t testing.TB, pd pprofile.Profiles) string {
	t.Helper()
	var all []string
	for _, p := range profiletest.Expand(t, pd) {
		sum := int64(0)
		for _, s := range p.Samples {
			sum += s.Sum.Int64()
		}
		all = append(all, fmt.Sprintf("%s %s/%s %d", profileType(p), p.Type, p.Unit, sum))
	}
	return strings.Join(all, ", ")
}

func profileType(p expand.Profile) any { return expand.Value(p.Scope.Attributes, attrkey.ProfileType) }

const (
	javaStack   = "shop.Cart.total;java.lang.Thread.run"
	nativeStack = "vfs_read;read;java.net.Socket.read0;start_thread"
	mainThread  = " thread.id=1 thread.name=main"
	gcThread    = " thread.id=200 thread.name=GC Thread"
	onCPU       = " thread.state=STATE_DEFAULT"
	sleeping    = " thread.state=STATE_SLEEPING"
)

func TestUnmarshalSumsEqualSamples(t *testing.T) {
	pd, report := unmarshal(t, jfrtranslator.Unmarshaler{}, cpu())
	assert.Equal(t, `cpu samples/count period 10000000 cpu/nanoseconds
  `+javaStack+` 3`+mainThread+onCPU+`
  `+nativeStack+` 1`+gcThread+onCPU+`
cpu cpu/nanoseconds period 10000000 cpu/nanoseconds
  `+javaStack+` 30000000`+mainThread+onCPU+`
  `+nativeStack+` 10000000`+gcThread+onCPU+"\n", show(t, pd))
	assert.Equal(t, 2, report.OtherEvents, "settings")

	frames := map[string]string{}
	for _, p := range profiletest.Expand(t, pd) {
		assert.EqualValues(t, 1_700_000_000_000_000_000, p.Time)
		assert.EqualValues(t, 10*time.Second, p.Duration)
		assert.Equal(t, "delta", expand.Value(p.Attributes, attrkey.Temporality))
		for _, s := range p.Samples {
			for _, f := range s.Stack {
				l := f.Lines[0]
				frames[l.Function] = fmt.Sprintf("%v %s %s:%d", f.Attributes[0].Value, l.SystemName, f.Mapping.File, l.Line)
			}
		}
	}
	assert.Equal(t, map[string]string{
		"shop.Cart.total":       "jvm shop/Cart.total(I)J :42",
		"java.lang.Thread.run":  "jvm java/lang/Thread.run()V :9",
		"java.net.Socket.read0": "jvm java/net/Socket.read0()I :3", // a native method of a class
		"read":                  "native  libc.so.6:0",
		"start_thread":          "native  :0",
		"vfs_read":              "kernel  [kernel]:0",
	}, frames)
}

func TestUnmarshalKeepsTimestamps(t *testing.T) {
	c := cpu()
	c.Class("profiler.LiveObject", jfrwriter.StartTime, jfrwriter.Thread, jfrwriter.Stack, jfrwriter.Long("allocationSize"))
	c.Event("profiler.LiveObject", 1000, 1, 1, 24)
	c.Event("profiler.LiveObject", 1000, 1, 1, 8)
	pd, _ := unmarshal(t, jfrtranslator.Unmarshaler{Timestamps: true}, c)
	assert.Equal(t, `cpu samples/count period 10000000 cpu/nanoseconds
  `+javaStack+` 3`+mainThread+onCPU+` @0:1 @1:1 @2:1
  `+nativeStack+` 1`+gcThread+onCPU+` @5:1
cpu cpu/nanoseconds period 10000000 cpu/nanoseconds
  `+javaStack+` 30000000`+mainThread+onCPU+` @0:10000000 @1:10000000 @2:10000000
  `+nativeStack+` 10000000`+gcThread+onCPU+` @5:10000000
live live_objects/count
  `+javaStack+` 2`+mainThread+`
live live_bytes/bytes
  `+javaStack+" 32"+mainThread+"\n", show(t, pd))
}

func TestUnmarshalReadsEachEvent_J4(t *testing.T) {
	start, stack, thread, sampled, state, duration := jfrwriter.StartTime, jfrwriter.Stack, jfrwriter.Thread, jfrwriter.Sampled, jfrwriter.State, jfrwriter.Duration
	long, weight := jfrwriter.Long, jfrwriter.Field{Name: "weight", Kind: "float"}
	failed, period := jfrwriter.Field{Name: "failed", Kind: "boolean"}, jfrwriter.Field{Name: "samplingPeriod", Kind: "long", Unit: "NANOSECONDS"}
	type fields []jfrwriter.Field // after start and stack
	type values []any
	for _, test := range []struct {
		event  string
		fields fields
		values values
		want   string
	}{
		{"jdk.ExecutionSample", fields{sampled, state}, values{1, 1}, "cpu samples/count 1"},
		{"jdk.NativeMethodSample", fields{sampled, state}, values{1, 1}, "cpu samples/count 1"},
		{"jdk.CPUTimeSample", fields{thread, failed, period}, values{1, false, 11_000_000}, "cpu samples/count 1, cpu cpu/nanoseconds 11000000"},
		{"profiler.WallClockSample", fields{sampled, state, {Name: "samples", Kind: "int"}}, values{1, 1, 7}, "wall samples/count 7, wall wall/nanoseconds 350000000"},
		{"jdk.ObjectAllocationInNewTLAB", fields{thread, long("allocationSize"), long("tlabSize")}, values{1, 16, 4096}, "alloc alloc_in_new_tlab_objects/count 1, alloc alloc_in_new_tlab_bytes/bytes 4096"},
		{"jdk.ObjectAllocationOutsideTLAB", fields{thread, long("allocationSize")}, values{1, 1 << 20}, "alloc alloc_outside_tlab_objects/count 1, alloc alloc_outside_tlab_bytes/bytes 1048576"},
		{"jdk.ObjectAllocationSample", fields{thread, long("weight")}, values{1, 12345}, "alloc alloc_sample_objects/count 1, alloc alloc_sample_bytes/bytes 12345"},
		{"datadog.ObjectSample", fields{thread, long("size"), weight}, values{1, 24, float32(2.5)}, "alloc alloc_sample_objects/count 3, alloc alloc_sample_bytes/bytes 60"},
		{"profiler.LiveObject", fields{thread, long("allocationSize")}, values{1, 24}, "live live_objects/count 1, live live_bytes/bytes 24"},
		{"datadog.HeapLiveObject", fields{thread, long("age"), long("size"), weight}, values{1, 3, 100, float32(4)}, "live live_objects/count 4, live live_bytes/bytes 400"},
		{"jdk.JavaMonitorEnter", fields{duration, thread}, values{500, 1}, "mutex contentions/count 1, mutex delay/nanoseconds 500"},
		{"jdk.JavaMonitorWait", fields{duration, thread}, values{600, 1}, "block contentions/count 1, block delay/nanoseconds 600"},
		{"jdk.ThreadPark", fields{duration, thread}, values{700, 1}, "block contentions/count 1, block delay/nanoseconds 700"},
		{"jdk.ThreadSleep", fields{duration, thread, long("time")}, values{800, 1, 1}, "off_cpu events/count 1, off_cpu off_cpu/nanoseconds 800"},
		{"jdk.SocketRead", fields{duration, thread, jfrwriter.Text("host"), long("bytesRead")}, values{900, 1, "db", 5}, "off_cpu events/count 1, off_cpu off_cpu/nanoseconds 900"},
		{"jdk.SocketWrite", fields{duration, thread, jfrwriter.Text("host")}, values{901, 1, "db"}, "off_cpu events/count 1, off_cpu off_cpu/nanoseconds 901"},
		{"jdk.FileRead", fields{duration, thread, jfrwriter.Text("path")}, values{902, 1, "/a"}, "off_cpu events/count 1, off_cpu off_cpu/nanoseconds 902"},
		{"jdk.FileWrite", fields{duration, thread, jfrwriter.Text("path")}, values{903, 1, "/a"}, "off_cpu events/count 1, off_cpu off_cpu/nanoseconds 903"},
		{"jdk.FileForce", fields{duration, thread, jfrwriter.Text("path")}, values{904, 1, "/a"}, "off_cpu events/count 1, off_cpu off_cpu/nanoseconds 904"},
		{"profiler.Malloc", fields{thread, long("address"), long("size")}, values{1, 1 << 62, 64}, "native malloc_objects/count 1, native malloc_bytes/bytes 64"},
	} {
		t.Run(test.event, func(t *testing.T) {
			c := java()
			c.Class(test.event, append(fields{start, stack}, test.fields...)...)
			c.Event(test.event, append(values{1000, 1}, test.values...)...)
			c.Class("vendor.Unknown", start, jfrwriter.Text("text"))
			c.Event("vendor.Unknown", 1000, "something")
			pd, report := unmarshal(t, jfrtranslator.Unmarshaler{SampleRate: 20}, c)
			assert.Equal(t, test.want, totals(t, pd))
			assert.Equal(t, pd.SampleCount(), strings.Count(show(t, pd), "  "+javaStack+" "))
			assert.Equal(t, pd.SampleCount(), strings.Count(show(t, pd), mainThread))
			assert.Equal(t, 1, report.OtherEvents)
		})
	}
}

// ddprof returns a chunk of Datadog's library.
func ddprof() *jfrwriter.Chunk {
	c := java()
	c.Class("profiler.types.AttributeValue", jfrwriter.Text("value"))
	c.Class("datadog.types.ExecutionMode", jfrwriter.Text("name"))
	c.Constant("profiler.types.AttributeValue", 5, "GET /cart")
	c.Constant("datadog.types.ExecutionMode", 1, "JAVA")
	c.Class("datadog.DatadogProfilerConfig", jfrwriter.StartTime, jfrwriter.Duration, jfrwriter.Thread,
		jfrwriter.Field{Name: "cpuInterval", Kind: "long", Unit: "MILLISECONDS"}, jfrwriter.Field{Name: "wallInterval", Kind: "long", Unit: "MILLISECONDS"})
	for _, name := range []string{"datadog.ExecutionSample", "datadog.MethodSample"} {
		c.Class(name, jfrwriter.StartTime, jfrwriter.Thread, jfrwriter.Stack, jfrwriter.State,
			jfrwriter.Field{Name: "mode", Kind: "datadog.types.ExecutionMode", Constant: true},
			jfrwriter.Long("weight"), jfrwriter.Long("spanId"), jfrwriter.Long("localRootSpanId"),
			jfrwriter.Field{Name: "http.route", Kind: "profiler.types.AttributeValue", Constant: true})
	}
	return c
}

func TestUnmarshalReadsDatadogsContext_J4(t *testing.T) {
	c := ddprof()
	c.Event("datadog.DatadogProfilerConfig", 1000, 0, 1, 9, 50)
	c.Event("datadog.ExecutionSample", 1000, 1, 1, 1, 1, 2, 77, 70, 5)
	c.Event("datadog.ExecutionSample", 1000, 1, 1, 1, 1, 1, 0, 0, 0)
	c.Event("datadog.MethodSample", 1000, 1, 2, 2, 1, 3, 0, 0, 0)
	pd, _ := unmarshal(t, jfrtranslator.Unmarshaler{}, c)
	context := " http.route=GET /cart local root span id=70 span id=77"
	assert.Equal(t, `cpu samples/count period 9000000 cpu/nanoseconds
  `+javaStack+` 1`+mainThread+onCPU+`
  `+javaStack+` 2`+context+mainThread+onCPU+`
cpu cpu/nanoseconds period 9000000 cpu/nanoseconds
  `+javaStack+` 18000000`+context+mainThread+onCPU+`
  `+javaStack+` 9000000`+mainThread+onCPU+`
wall samples/count period 50000000 wall/nanoseconds
  `+nativeStack+` 3`+mainThread+sleeping+`
wall wall/nanoseconds period 50000000 wall/nanoseconds
  `+nativeStack+` 150000000`+mainThread+sleeping+"\n", show(t, pd))
}

// A chunk without samples covers its time for what its settings say is recorded, or what an earlier chunk has samples of.
func TestIdleChunkCoversItsTime(t *testing.T) {
	idle := async(java(), "event", "cpu", "interval", "10000000")
	executionSample(idle)
	pd, _ := unmarshal(t, jfrtranslator.Unmarshaler{}, idle)
	require.Equal(t, 2, pd.ProfileCount())
	for p := range sampletypes.ProfilesOf(pd) {
		assert.Zero(t, p.Samples().Len())
		assert.EqualValues(t, idle.Start, p.Time())
		assert.Positive(t, p.DurationNano())
	}
	later := async(java())
	executionSample(later)
	later.Start += 60e9
	pd, _ = unmarshal(t, jfrtranslator.Unmarshaler{}, cpu(), later)
	times := map[int64]int{}
	for p := range sampletypes.ProfilesOf(pd) {
		times[int64(p.Time())] += p.Samples().Len()
	}
	assert.Len(t, times, 2)
	assert.Zero(t, times[later.Start])
}

func TestUnmarshalReplacesSamplesOfTheJDK_J4(t *testing.T) {
	jdk := java()
	executionSample(jdk)
	jdk.Event("jdk.ExecutionSample", 1000, 1, 1, 1)
	jdk.Class("jdk.ObjectAllocationSample", jfrwriter.StartTime, jfrwriter.Thread, jfrwriter.Stack, jfrwriter.Long("weight"))
	jdk.Event("jdk.ObjectAllocationSample", 1000, 1, 1, 12345)
	library := ddprof() // a chunk of its own, after that of the JDK
	library.Event("datadog.ExecutionSample", 1000, 1, 1, 1, 1, 2, 0, 0, 0)
	pd, _ := unmarshal(t, jfrtranslator.Unmarshaler{}, jdk, library)
	assert.Equal(t, `alloc alloc_sample_objects/count
  `+javaStack+` 1`+mainThread+`
alloc alloc_sample_bytes/bytes
  `+javaStack+` 12345`+mainThread+`
cpu samples/count
  `+javaStack+" 2"+mainThread+onCPU+"\n", show(t, pd))
}

func TestUnmarshalTellsWallFromCPU(t *testing.T) {
	for name, test := range map[string]struct {
		settings []string
		rate     float64
		want     string
	}{
		"wall":              {[]string{"event", "wall", "interval", "20000000"}, 0, "wall samples/count 2, wall wall/nanoseconds 40000000"},
		"wall by default":   {[]string{"event", "wall", "interval", "0"}, 0, "wall samples/count 2, wall wall/nanoseconds 100000000"},
		"cpu":               {[]string{"event", "ctimer", "interval", "5000000"}, 0, "cpu samples/count 2, cpu cpu/nanoseconds 10000000"},
		"cpu by default":    {[]string{"event", "cpu", "interval", "0"}, 0, "cpu samples/count 2, cpu cpu/nanoseconds 20000000"},
		"both":              {[]string{"event", "cpu", "interval", "5000000", "wall", "100000000"}, 0, "cpu samples/count 1, cpu cpu/nanoseconds 5000000, wall samples/count 1, wall wall/nanoseconds 100000000"},
		"a counter":         {[]string{"event", "cache-misses", "interval", "1000"}, 100, "cpu samples/count 2"},
		"no settings":       {nil, 0, "cpu samples/count 2"},
		"rate of the agent": {nil, 100, "cpu samples/count 2, cpu cpu/nanoseconds 20000000"},
	} {
		t.Run(name, func(t *testing.T) {
			c := async(java(), test.settings...)
			executionSample(c)
			c.Event("jdk.ExecutionSample", 1000, 1, 1, 1)
			c.Event("jdk.ExecutionSample", 1000, 1, 1, 2)
			pd, _ := unmarshal(t, jfrtranslator.Unmarshaler{SampleRate: test.rate}, c)
			assert.Equal(t, test.want, totals(t, pd))
		})
	}
}

func TestUnmarshalReadsPyroscopesLabelsAndLinks(t *testing.T) {
	c := async(java(), "event", "cpu", "interval", "10000000")
	executionSample(c, jfrwriter.Long("spanId"), jfrwriter.Long("spanName"), jfrwriter.Long("contextId"), jfrwriter.Long("traceIdHi"), jfrwriter.Long("traceIdLo"))
	c.Event("jdk.ExecutionSample", 1000, 1, 1, 1, 0xabc, 4, 7, 1, 2)
	c.Event("jdk.ExecutionSample", 1000, 1, 1, 1, 0xabc, 0, 0, 0, 0)
	c.Event("jdk.ExecutionSample", 1000, 1, 1, 1, 0, 0, 8, 1, 2)
	c.Event("jdk.ExecutionSample", 1000, 1, 1, 1, 0, 0, 0, 0, 0)
	// LabelsSnapshot{contexts: {7: {labels: {1: 2, 3: 2}}}, strings: {1: "region", 2: "eu", 3: "thread.name", 4: "checkout"}}
	labels := "\x0a\x10\x08\x07\x12\x0c\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x02" +
		"\x12\x0a\x08\x01\x12\x06region" + "\x12\x06\x08\x02\x12\x02eu" + "\x12\x0f\x08\x03\x12\x0bthread.name" + "\x12\x0c\x08\x04\x12\x08checkout"
	pd, _ := unmarshal(t, jfrtranslator.Unmarshaler{Labels: []byte(labels)}, c)
	got, _, _ := strings.Cut(show(t, pd), "cpu cpu/")
	assert.Equal(t, `cpu samples/count period 10000000 cpu/nanoseconds
  `+javaStack+` 1 profile_id=0000000000000abc`+mainThread+onCPU+`
  `+javaStack+` 1 region=eu span_name=checkout`+mainThread+onCPU+` link 00000000000000010000000000000002/0000000000000abc
  `+javaStack+` 1`+mainThread+onCPU+`
  `+javaStack+` 1`+mainThread+onCPU+" trace_id=00000000000000010000000000000002\n", got)

	_, _, err := (&jfrtranslator.Unmarshaler{Labels: []byte("\x0a\xff")}).UnmarshalWithin(c.Bytes(), math.MaxInt64, nil)
	assert.EqualError(t, err, "jfr: labels: byte 2: the message ends inside a field")
}

func TestUnmarshalReadsEachEncodingOfStrings(t *testing.T) {
	c := async(jfrwriter.New(), "event", "cpu", "interval", "10000000")
	executionSample(c)
	c.Constant("java.lang.String", 1<<40, "from the pool")
	for id, name := range []any{
		jfrwriter.Null, jfrwriter.String{Encoding: 1}, jfrwriter.Ref(1 << 40), "UTF-8 ä",
		jfrwriter.String{Encoding: 4, Value: "UTF-16 ä😀"}, jfrwriter.String{Encoding: 5, Value: "Latin-1 ä"}, "bad \xff", jfrwriter.Ref(99),
		"a pair \xed\xa0\xbd\xed\xb8\x80, 한, half \xed\xa0\xbd, half \xed\xb8\x80\xed",
	} {
		c.Constant("java.lang.Thread", uint64(id), jfrwriter.Null, 0, name, id+1)
		c.Event("jdk.ExecutionSample", 1000, id, 0, 0)
	}
	pd, report := unmarshal(t, jfrtranslator.Unmarshaler{}, c)
	got, _, _ := strings.Cut(show(t, pd), "cpu cpu/")
	assert.Equal(t, "cpu samples/count period 10000000 cpu/nanoseconds\n   1 thread.id=1\n   1 thread.id=2\n"+
		"   1 thread.id=3 thread.name=from the pool\n   1 thread.id=4 thread.name=UTF-8 ä\n   1 thread.id=5 thread.name=UTF-16 ä😀\n"+
		"   1 thread.id=6 thread.name=Latin-1 ä\n   1 thread.id=7 thread.name=bad \\xff\n   1 thread.id=8\n"+
		"   1 thread.id=9 thread.name=a pair 😀, 한, half \\xed\\xa0\\xbd, half \\xed\\xb8\\x80\\xed\n", got)
	assert.Equal(t, 2, report.InvalidStrings)
}

func TestUnmarshalKeepsChunksApart_J3(t *testing.T) {
	first := cpu()
	second := async(jfrwriter.New()) // without settings, which are those of the first
	second.Start += 10e9
	second.Constant("jdk.types.FrameType", 1, "JIT compiled")
	second.Method(2, "other/Place", "meet", "()V")
	second.StackTrace(1, jfrwriter.Frame{Method: 2, Line: 1, Type: 1})
	second.Constant("java.lang.Thread", 1, "", 5, "worker", 5)
	executionSample(second)
	second.Event("jdk.ExecutionSample", 1000, 1, 1, 0)
	second.Event("jdk.ExecutionSample", 1000, 1, 2, 0)
	pd, _ := unmarshal(t, jfrtranslator.Unmarshaler{}, first, second)
	_, got, _ := strings.Cut(show(t, pd), "cpu/nanoseconds\n  "+javaStack+" 30000000")
	_, got, _ = strings.Cut(got, "\ncpu ")
	assert.Equal(t, `samples/count period 10000000 cpu/nanoseconds
   1 thread.id=5 thread.name=worker
  other.Place.meet 1 thread.id=5 thread.name=worker
cpu cpu/nanoseconds period 10000000 cpu/nanoseconds
   10000000 thread.id=5 thread.name=worker
  other.Place.meet 10000000 thread.id=5 thread.name=worker
`, got)
	assert.Equal(t, []int64{first.Start, second.Start}, starts(pd))
}

func TestUnmarshalConvertsTicks_J3(t *testing.T) {
	c := java()
	c.Rate = 2_500_000_000
	c.Class("jdk.ThreadPark", jfrwriter.StartTime, jfrwriter.Duration, jfrwriter.Thread, jfrwriter.Stack)
	c.Event("jdk.ThreadPark", 1000+25, 5_000_000_000, 1, 1)
	c.Event("jdk.ThreadPark", 1000-50, 25, 2, 1)
	c.Class("jdk.JavaMonitorEnter", jfrwriter.StartTime, jfrwriter.Field{Name: "duration", Kind: "long", Unit: "MILLISECONDS"}, jfrwriter.Thread, jfrwriter.Stack)
	c.Event("jdk.JavaMonitorEnter", 1000, 3, 0, 1)
	c.Event("jdk.JavaMonitorEnter", 1000, -3, 0, 1)
	pd, report := unmarshal(t, jfrtranslator.Unmarshaler{Timestamps: true}, c)
	got := show(t, pd)
	assert.Contains(t, got, "@3000000:3000000", "an event is at its end")
	assert.Contains(t, got, "@2000000010:2000000000")
	assert.Contains(t, got, "@0:10", "its end is 10 ns before the chunk")
	assert.Equal(t, 1, report.NegativeValues)
	assert.Equal(t, 1, report.OutsideTimes)
}

func TestUnmarshalReadsUnfinishedChunks_J3(t *testing.T) {
	whole := cpu()
	whole.State = 5
	data := whole.Bytes()
	for name, end := range map[string][]byte{
		"nothing":        nil,
		"zeros":          make([]byte, 100),
		"half an event":  {0x20, 0x30, 1},
		"half an number": {0x80},
	} {
		t.Run(name, func(t *testing.T) {
			u := jfrtranslator.Unmarshaler{}
			pd, err := u.UnmarshalProfiles(append(bytes.Clone(data), end...))
			require.NoError(t, err)
			profiletest.RequireConforms(t, pd)
			assert.Contains(t, show(t, pd), javaStack+" 3")
		})
	}
	// The header of a chunk that was never flushed knows neither its size nor its metadata.
	never := bytes.Clone(data)
	copy(never[8:32], make([]byte, 24))
	copy(never[40:48], make([]byte, 8))
	pd, _, err := (&jfrtranslator.Unmarshaler{}).UnmarshalWithin(never, math.MaxInt64, nil)
	require.NoError(t, err)
	assert.Contains(t, show(t, pd), javaStack+" 3")
	assert.EqualValues(t, 6, pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).DurationNano(), "up to the last sample")
	// It may be followed by another chunk.
	pd, _, err = (&jfrtranslator.Unmarshaler{}).UnmarshalWithin(append(bytes.Clone(data), cpu().Bytes()...), math.MaxInt64, nil)
	require.NoError(t, err)
	assert.Equal(t, 2, pd.ResourceProfiles().At(0).ScopeProfiles().Len())
	// A header alone is a recording without samples.
	pd, _, err = (&jfrtranslator.Unmarshaler{}).UnmarshalWithin(never[:68], math.MaxInt64, nil)
	require.NoError(t, err)
	assert.Zero(t, pd.SampleCount())
}

// A chunk that is damaged, or that needs more memory than there ever is, does not keep the others from being read.
func TestReaderReadsChunkByChunk_J2_J3(t *testing.T) {
	first, last, damaged, large := cpu(), cpu(), cpu(), cpu()
	last.Start += 10e9
	damaged.Raw([]byte{0})
	for i := range 40_000 {
		large.Event("jdk.ExecutionSample", 1000+i, 1, 1, 1)
	}
	for want, c := range map[string]*jfrwriter.Chunk{"jfr: chunk 2, byte ": damaged, "bytes of memory: more than the limit of": large} {
		var times []int64
		for pd, err := range read(recording(first, c, last), 300<<10) {
			if err != nil {
				require.ErrorContains(t, err, want)
				continue
			}
			profiletest.RequireConforms(t, pd)
			times = append(times, starts(pd)...)
		}
		assert.Equal(t, []int64{first.Start, last.Start}, times)
	}
}

// A JVM that ends after jcmd JFR.dump writes all chunks again into the file of the dump.
func TestRepeatedChunksAreLeftOut(t *testing.T) {
	first, second := ddprof(), ddprof()
	first.Event("datadog.ExecutionSample", 1000, 1, 1, 1, 1, 7, 0, 0, 5)
	second.Event("datadog.ExecutionSample", 1000, 1, 1, 1, 1, 8, 0, 0, 5)
	twice := []*jfrwriter.Chunk{first, first, second, first}
	want, _ := unmarshal(t, jfrtranslator.Unmarshaler{}, first, second)
	got, _ := unmarshal(t, jfrtranslator.Unmarshaler{}, twice...)
	assert.Equal(t, 2, got.SampleCount())
	assert.Equal(t, profiletest.Proto(t, want), profiletest.Proto(t, got))

	var samples []int
	for pd, err := range read(recording(twice...), math.MaxInt64) {
		require.NoError(t, err)
		samples = append(samples, pd.SampleCount())
	}
	assert.Equal(t, []int{1, 0, 1, 0}, samples)
}

// A chunk for which there was no memory is translated again, wherever its translation ended. A repeated one stays left out.
func TestChunksAreTranslatedAgainAfterALackOfMemory_M1(t *testing.T) {
	first, second := ddprof(), ddprof()
	for i := range 3000 {
		first.Constant("java.lang.Thread", uint64(10+i), "os", i, "java", 0)
		first.Event("datadog.ExecutionSample", 1000, 10+i, 1, 1, 1, 1, int64(i), 0, 5)
	}
	second.Event("datadog.ExecutionSample", 1000, 1, 1, 1, 1, 8, 0, 0, 5)
	data := recording(first, second, first)
	full, lacks := errors.New("full"), 0
	for memory := int64(1 << 10); memory <= 2<<20; memory *= 4 {
		r := (&jfrtranslator.Unmarshaler{}).NewReader(bytes.NewReader(data), int64(len(data)))
		var samples []int
		for {
			pd, _, err := r.Next(memory, func(needed int64) (int64, error) {
				require.Greater(t, needed, memory)
				return 0, full
			})
			if err != nil && !errors.Is(err, io.EOF) {
				require.ErrorIs(t, err, full)
				lacks++
				r.Back()
				pd, _, err = r.Next(memory, func(needed int64) (int64, error) { return 2 * needed, nil })
			}
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			samples = append(samples, pd.SampleCount())
		}
		assert.Equal(t, []int{3000, 1, 0}, samples, "%d bytes", memory)
	}
	assert.Greater(t, lacks, 5)
}

// What a chunk takes is free again for the next one.
func TestReaderTakesTheMemoryOfOneChunk_J2(t *testing.T) {
	other := java()
	for i := range 200 {
		other.Class(fmt.Sprintf("a.b.C%d", i), jfrwriter.Long("x"), jfrwriter.Text("text"))
	}
	c := ddprof()
	for i := range 2000 {
		c.Constant("java.lang.Thread", uint64(10+i), "os", i, "java", 0)
		c.Event("datadog.ExecutionSample", 1000, 10+i, 1, 1, 1, 1, int64(1)<<62+int64(i), int64(1)<<61+int64(i), 5)
	}
	var all []byte
	for i := range byte(50) {
		data := recording(c, other)
		data[39] = i // the start of the chunk: one that is repeated is left out
		all = append(all, data...)
	}
	for _, err := range read(all, 4<<20) {
		require.NoError(t, err)
	}
}

// Datadog's events have no id of a trace. With one, the span becomes a link.
func TestUnmarshalLinksDatadogsSpansWithATrace_J4(t *testing.T) {
	c := java()
	c.Class("datadog.ExecutionSample", jfrwriter.StartTime, jfrwriter.Long("spanId"), jfrwriter.Long("localRootSpanId"), jfrwriter.Long("traceIdHi"), jfrwriter.Long("traceIdLo"))
	c.Event("datadog.ExecutionSample", 1000, 77, 70, 1, 2)
	pd, _ := unmarshal(t, jfrtranslator.Unmarshaler{}, c)
	assert.Equal(t, "cpu samples/count\n   1 local root span id=70 link 00000000000000010000000000000002/000000000000004d\n", show(t, pd))
}

// Integers of one to nine bytes, and stacks that end alike, in frames or only in bytes.
func TestFramesOfEachLengthAreRead(t *testing.T) {
	ids := []uint64{1, 2, 127, 128, 129, 300, 2 << 14, 2<<14 + 1, 1 << 21, 3 << 34, 1<<55 + 1, 1<<61 + 7}
	lines := []uint64{0, 1, 2, 127, 128, 300, 1 << 20, 1<<31 - 1}
	c := java()
	executionSample(c)
	for _, id := range ids {
		c.Method(id, "Class", fmt.Sprint("method", id), "()V")
	}
	random := rand.New(rand.NewPCG(1, 2))
	var stacks [][]jfrwriter.Frame
	want := map[string]int{}
	for i := range uint64(500) {
		var stack []jfrwriter.Frame
		for range random.IntN(4) {
			stack = append(stack, jfrwriter.Frame{Method: ids[random.IntN(len(ids))], Line: lines[random.IntN(len(lines))], Type: 1})
		}
		if i > 0 {
			before := stacks[random.IntN(len(stacks))]
			stack = append(stack, before[random.IntN(len(before)+1):]...)
		}
		stacks = append(stacks, stack)
		c.StackTrace(1000+i, stack...)
		c.Event("jdk.ExecutionSample", 1000, 1, 1000+i, 1)
		var frames []string
		for _, f := range stack {
			frames = append(frames, fmt.Sprintf("Class.method%d:%d", f.Method, f.Line))
		}
		want[strings.Join(frames, ";")]++
	}
	pd, _ := unmarshal(t, jfrtranslator.Unmarshaler{}, c)
	expanded := profiletest.Expand(t, pd)
	got := map[string]int{}
	for _, s := range expanded[0].Samples {
		var frames []string
		for _, f := range s.Stack {
			frames = append(frames, fmt.Sprintf("%s:%d", f.Lines[0].Function, f.Lines[0].Line))
		}
		got[strings.Join(frames, ";")] += int(s.Sum.Int64())
	}
	require.Equal(t, want, got)
}
