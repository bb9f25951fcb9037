// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"runtime/trace"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tracing is held while a trace is recorded: a process has one at a time.
var tracing sync.Mutex

// GoTraceWait is how long a goroutine of GoTrace waits for a channel.
const GoTraceWait = 5 * time.Millisecond

// GoTrace returns an execution trace of Go, in which a goroutine waits for a channel.
func GoTrace(tb testing.TB) []byte {
	tb.Helper()
	tracing.Lock()
	defer tracing.Unlock()
	var buffer bytes.Buffer
	require.NoError(tb, trace.Start(&buffer))
	ready, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		<-ready
	}()
	time.Sleep(GoTraceWait)
	close(ready)
	<-done
	trace.Stop()
	return buffer.Bytes()
}
