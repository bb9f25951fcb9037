// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"testing"

	"github.com/grafana/jfr-parser/parser"
	"github.com/grafana/jfr-parser/parser/types"
	"github.com/grafana/jfr-parser/pprof"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/jfrwriter"
)

// parsed sums a recording by jfr-parser. Durations are made nanoseconds by the rate of
// the chunk, which jfr-parser leaves as ticks.
func parsed(t testing.TB, data []byte) sums {
	t.Helper()
	p := parser.NewParser(data, parser.Options{})
	all, stacks := sums{}, map[types.StackTraceRef]string{}
	nanoseconds := func(ticks uint64) int64 {
		n := new(big.Int).Mul(new(big.Int).SetUint64(ticks), big.NewInt(1e9))
		return n.Div(n, new(big.Int).SetUint64(p.ChunkHeader().TicksPerSecond)).Int64()
	}
	for {
		typ, err := p.ParseEvent()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		add := func(kind string, stack types.StackTraceRef, first, second int64) {
			if _, known := stacks[stack]; !known {
				stacks[stack] = stackOf(p, stack)
			}
			all.add(kind+"\t"+stacks[stack], first, second)
		}
		switch typ {
		case p.TypeMap.T_EXECUTION_SAMPLE:
			add("samples", p.ExecutionSample.StackTrace, 1, 0)
		case p.TypeMap.T_WALL_CLOCK_SAMPLE:
			add("samples", p.WallClockSample.StackTrace, int64(p.WallClockSample.Samples), 0)
		case p.TypeMap.T_ALLOC_IN_NEW_TLAB:
			add("alloc_in_new_tlab_objects", p.ObjectAllocationInNewTLAB.StackTrace, 1, int64(p.ObjectAllocationInNewTLAB.TlabSize))
		case p.TypeMap.T_ALLOC_OUTSIDE_TLAB:
			add("alloc_outside_tlab_objects", p.ObjectAllocationOutsideTLAB.StackTrace, 1, int64(p.ObjectAllocationOutsideTLAB.AllocationSize))
		case p.TypeMap.T_ALLOC_SAMPLE:
			add("alloc_sample_objects", p.ObjectAllocationSample.StackTrace, 1, int64(p.ObjectAllocationSample.Weight))
		case p.TypeMap.T_LIVE_OBJECT:
			add("live_objects", p.LiveObject.StackTrace, 1, int64(p.LiveObject.AllocationSize))
		case p.TypeMap.T_MALLOC:
			add("malloc_objects", p.Malloc.StackTrace, 1, int64(p.Malloc.Size))
		case p.TypeMap.T_MONITOR_ENTER:
			add("mutex contentions", p.JavaMonitorEnter.StackTrace, 1, nanoseconds(p.JavaMonitorEnter.Duration))
		case p.TypeMap.T_THREAD_PARK:
			add("block contentions", p.ThreadPark.StackTrace, 1, nanoseconds(p.ThreadPark.Duration))
		}
	}
}

func stackOf(p *parser.Parser, id types.StackTraceRef) string {
	stack := p.GetStacktrace(id)
	if stack == nil {
		return ""
	}
	var frames []string
	for _, f := range stack.Frames {
		method := p.GetMethod(f.Method)
		name := p.GetSymbolString(method.Name)
		if of := p.GetClass(method.Type); of != nil && p.GetSymbolString(of.Name) != "" {
			name = p.GetSymbolString(of.Name) + "." + name
		}
		frames = append(frames, fmt.Sprintf("%s:%d", name, max(int32(f.LineNumber), 0)))
	}
	return strings.ReplaceAll(strings.Join(frames, ";"), "/", ".")
}

// jfr-parser does not read these events. Those of the JDK share their kind with others.
var unread = []string{"jdk.NativeMethodSample", "jdk.JavaMonitorWait", "datadog.ExecutionSample"}

// In each chunk, sums by kind and stack are those of jfr-parser.
func TestSumsOfEachChunkAreThoseOfJFRParser_J3_J4(t *testing.T) {
	for _, r := range recordings(t) {
		t.Run(r.name, func(t *testing.T) {
			skipLarge(t, r)
			for _, chunk := range chunks(r.data) {
				want, got := parsed(t, chunk), translated(t, chunk, false)
				for _, event := range unread {
					if strings.Contains(string(chunk), event) {
						// The test against the JDK covers these.
						for _, all := range []sums{want, got} {
							for key := range all {
								if strings.HasPrefix(key, "samples\t") || strings.HasPrefix(key, "block contentions\t") || strings.HasPrefix(key, "alloc_sample_objects\t") {
									delete(all, key)
								}
							}
						}
					}
				}
				requireSame(t, want, got)
			}
		})
	}
}

// The recording has chunks of the JDK and one of Datadog's library. jfr-parser reads
// nothing of the latter, and the JDK's own parser rejects it.
func TestDatadogsEventsReplaceThoseOfTheJDK_J4(t *testing.T) {
	for _, r := range recordings(t) {
		if r.name != "event-with-type-zero" {
			continue
		}
		count := func(all sums, kind string) (n int64) {
			for key, sum := range all {
				if strings.HasPrefix(key, kind+"\t") {
					n += sum[0]
				}
			}
			return n
		}
		got := translated(t, r.data, false)
		assert.EqualValues(t, 1512, count(got, "samples"), "datadog.ExecutionSample, by weight")
		assert.Zero(t, count(got, "alloc_in_new_tlab_objects"))
		assert.EqualValues(t, 22079, count(parsed(t, r.data), "alloc_in_new_tlab_objects"), "of the JDK")
	}
}

// jfr-parser's conversion to pprof looks samples up by the id of their stack, which is
// another stack in another chunk.
func TestJFRParserMixesUpChunks_J3(t *testing.T) {
	var recording []byte
	for _, method := range []string{"first", "second"} {
		c := jfrwriter.New()
		c.Class("jdk.types.Package") // jfr-parser wants these
		c.Class("jdk.types.ClassLoader")
		c.Class("jdk.ExecutionSample", jfrwriter.StartTime, jfrwriter.Sampled, jfrwriter.Stack, jfrwriter.State)
		c.Constant("jdk.types.FrameType", 1, "JIT compiled")
		c.Constant("jdk.types.ThreadState", 1, "STATE_RUNNABLE")
		c.Method(1, "Chunk", method, "()V")
		c.StackTrace(1, jfrwriter.Frame{Method: 1, Line: 5, Type: 1})
		c.Event("jdk.ExecutionSample", 1000, 0, 1, 1)
		recording = append(recording, c.Bytes()...)
	}
	converted, err := pprof.ParseJFR(recording, &pprof.ParseInput{SampleRate: 1e9}, nil)
	require.NoError(t, err)
	p := converted.Profiles[0].Profile
	require.Len(t, p.Sample, 1)
	assert.Equal(t, []int64{2}, p.Sample[0].Value)
	assert.Equal(t, "Chunk.first", p.StringTable[p.Function[0].Name])

	assert.Equal(t, sums{"samples\tChunk.first:5": {1, 0}, "samples\tChunk.second:5": {1, 0}}, translated(t, recording, false))
}

// jfr-parser calls ticks nanoseconds. The sum here is that of the JDK, which
// TestSumsAreThoseOfTheJDK compares.
func TestJFRParserTakesTicksForNanoseconds_J3(t *testing.T) {
	for _, r := range recordings(t) {
		if r.name != "cortex-dev-01__kafka-0__cpu_lock0_alloc0__0" {
			continue
		}
		p, ticks := parser.NewParser(r.data, parser.Options{}), uint64(0)
		for {
			typ, err := p.ParseEvent()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if typ == p.TypeMap.T_MONITOR_ENTER {
				ticks += p.JavaMonitorEnter.Duration
			}
		}
		nanoseconds := int64(0)
		for key, sum := range translated(t, r.data, false) {
			if strings.HasPrefix(key, "mutex contentions\t") {
				nanoseconds += sum[1]
			}
		}
		assert.EqualValues(t, 2_799_998_547, rate(r.data))
		assert.InDelta(t, 2.8, float64(ticks)/float64(nanoseconds), 0.001)
	}
}

func TestRecordingsConform(t *testing.T) {
	for _, r := range recordings(t) {
		t.Run(r.name, func(t *testing.T) {
			skipLarge(t, r)
			requireConforms(t, r.data)
		})
	}
}
