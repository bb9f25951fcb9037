// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/jfrwriter"
)

// recordings are of the JVM: as async-profiler, the JDK and Datadog's library write them, in two chunks each.
func recordings() (all []input) {
	for i, record := range []func(r *random, c *jfrwriter.Chunk){recordAsync, recordJDK, recordDatadog} {
		r := random(i + 1)
		var data []byte
		for n := range int64(2) {
			c := newChunk(&r)
			c.Start += n * 10e9
			record(&r, c)
			data = append(data, c.Bytes()...)
		}
		all = append(all, input{[]string{"jfr/async", "jfr/jdk", "jfr/datadog"}[i], data})
	}
	return all
}

// newChunk returns a chunk with 20 methods, 30 stacks and 4 threads, and ticks of 0.4 ns.
func newChunk(r *random) *jfrwriter.Chunk {
	c := jfrwriter.New()
	c.Rate = 2_500_000_000
	for i, name := range []string{"Interpreted", "JIT compiled", "Inlined", "Native", "C++", "Kernel"} {
		c.Constant("jdk.types.FrameType", uint64(i), name)
	}
	for i, name := range []string{"STATE_DEFAULT", "STATE_SLEEPING"} {
		c.Constant("jdk.types.ThreadState", uint64(i), name)
	}
	for i := range uint64(20) {
		if i%5 == 4 {
			c.Method(i, "libjvm.so", fmt.Sprint("function", i), "()L;")
			continue
		}
		c.Method(i<<40, fmt.Sprint("shop/Class", i%7), fmt.Sprint("method", i), "(I)V")
	}
	for i := range uint64(4) {
		c.Constant("java.lang.Thread", i, fmt.Sprint("os-", i), 100+i, []any{jfrwriter.Null, fmt.Sprint("worker-", i)}[i%2], i%2*i)
	}
	for i := range uint64(30) {
		var frames []jfrwriter.Frame
		for range 1 + r.below(12) {
			method := uint64(r.below(21)) // of which there is one less
			if method%5 == 4 {
				frames = append(frames, jfrwriter.Frame{Method: method, Type: 3})
				continue
			}
			frames = append(frames, jfrwriter.Frame{Method: method << 40, Line: uint64(r.below(9)), Type: method % 3})
		}
		c.StackTrace(i, frames...)
	}
	return c
}

func recordAsync(r *random, c *jfrwriter.Chunk) {
	text, number := jfrwriter.Text("name"), jfrwriter.Long("id")
	c.Class("profiler.types.LogLevel", text)
	c.Class("jdk.ActiveSetting", jfrwriter.StartTime, number, text, jfrwriter.Text("value"))
	for _, setting := range [][2]string{{"event", "cpu"}, {"interval", "5000000"}, {"wall", "100000000"}} {
		c.Event("jdk.ActiveSetting", 1000, 1, setting[0], setting[1])
	}
	c.Class("jdk.ExecutionSample", jfrwriter.StartTime, jfrwriter.Sampled, jfrwriter.Stack, jfrwriter.State,
		jfrwriter.Long("spanId"), jfrwriter.Long("contextId"), jfrwriter.Long("traceIdHi"), jfrwriter.Long("traceIdLo"))
	c.Class("profiler.LiveObject", jfrwriter.StartTime, jfrwriter.Thread, jfrwriter.Stack, jfrwriter.Long("allocationSize"))
	c.Class("profiler.Malloc", jfrwriter.StartTime, jfrwriter.Thread, jfrwriter.Stack, jfrwriter.Long("size"))
	for i := range 300 {
		trace := i % 7 / 6
		c.Event("jdk.ExecutionSample", 1000+i, r.below(5), r.below(32), r.below(2), i%10/9*i, 0, trace*i, trace)
		c.Event("profiler.LiveObject", 1000+i, r.below(4), r.below(30), 8*r.below(100))
		c.Event("profiler.Malloc", 1000+i, r.below(4), r.below(30), r.below(5000))
	}
}

func recordJDK(r *random, c *jfrwriter.Chunk) {
	start, thread, stack := jfrwriter.StartTime, jfrwriter.Thread, jfrwriter.Stack
	c.Class("jdk.ExecutionSample", start, jfrwriter.Sampled, stack, jfrwriter.State)
	c.Class("jdk.ObjectAllocationSample", start, thread, stack, jfrwriter.Long("objectClass"), jfrwriter.Long("weight"))
	c.Class("jdk.JavaMonitorEnter", start, jfrwriter.Duration, thread, stack)
	c.Class("jdk.ThreadPark", start, jfrwriter.Duration, thread, stack)
	c.Class("jdk.CPULoad", start, jfrwriter.Field{Name: "user", Kind: "float"})
	for i := range 300 {
		c.Event("jdk.ExecutionSample", 1000+i, r.below(4), r.below(30), r.below(2))
		c.Event("jdk.ObjectAllocationSample", 1000+i, r.below(4), r.below(30), 7, r.below(1<<20))
		c.Event("jdk.JavaMonitorEnter", 1000+i, r.below(1e9), r.below(4), r.below(30))
		c.Event("jdk.CPULoad", 1000+i, float32(0.5))
		c.Event("jdk.ThreadPark", 1000+i, r.below(1e9), r.below(4), r.below(30))
	}
}

// recordDatadog also writes a sample of the JDK, which those of the library replace.
func recordDatadog(r *random, c *jfrwriter.Chunk) {
	start, thread, stack, state := jfrwriter.StartTime, jfrwriter.Thread, jfrwriter.Stack, jfrwriter.State
	milliseconds := func(name string) jfrwriter.Field {
		return jfrwriter.Field{Name: name, Kind: "long", Unit: "MILLISECONDS"}
	}
	route := jfrwriter.Field{Name: "http.route", Kind: "profiler.types.AttributeValue", Constant: true}
	weight := jfrwriter.Field{Name: "weight", Kind: "float"}
	c.Class("profiler.types.AttributeValue", jfrwriter.Text("value"))
	c.Constant("profiler.types.AttributeValue", 1, "GET /cart")
	c.Class("jdk.ExecutionSample", start, jfrwriter.Sampled, stack, state)
	c.Class("datadog.DatadogProfilerConfig", start, milliseconds("cpuInterval"), milliseconds("wallInterval"))
	c.Class("datadog.ExecutionSample", start, thread, stack, state, jfrwriter.Long("weight"), jfrwriter.Long("spanId"), jfrwriter.Long("localRootSpanId"), route)
	c.Class("datadog.MethodSample", start, thread, stack, state, jfrwriter.Long("weight"))
	c.Class("datadog.ObjectSample", start, thread, stack, jfrwriter.Long("size"), weight)
	c.Event("jdk.ExecutionSample", 1000, 1, 1, 1)
	c.Event("datadog.DatadogProfilerConfig", 1000, 9, 50)
	for i := range 300 {
		c.Event("datadog.ExecutionSample", 1000+i, r.below(4), r.below(30), r.below(2), 1+r.below(3), i%10/9*i, i%20/19*i, r.below(2))
		c.Event("datadog.MethodSample", 1000+i, r.below(4), r.below(30), r.below(2), 1)
		c.Event("datadog.ObjectSample", 1000+i, r.below(4), r.below(30), 8*r.below(1000), float32(r.below(1000))/8)
	}
}
