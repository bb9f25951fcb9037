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
	"github.com/stretchr/testify/require"
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

func TestRecordingsConform(t *testing.T) {
	for _, r := range recordings(t) {
		t.Run(r.name, func(t *testing.T) {
			skipLarge(t, r)
			requireConforms(t, r.data)
		})
	}
}
