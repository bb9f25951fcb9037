// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotracetranslator_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/trace"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stall is how long the program holds a lock that another goroutine wants.
const stall = 300 * time.Millisecond

// record returns the execution trace of a program.
func record(t testing.TB, program func()) []byte {
	t.Helper()
	var buffer bytes.Buffer
	require.NoError(t, trace.Start(&buffer))
	program()
	trace.Stop()
	return buffer.Bytes()
}

// workers are the functions of the program, each a goroutine that starts and ends within the trace. They have names of their
// own, by which tests find their stacks.
var workers = map[string]func(*shared){
	"workLock": workLock, "workHold": workHold, "workReceive": workReceive, "workSend": workSend, "workSelect": workSelect, "workRead": workRead, "workWrite": workWrite,
	"workFile": workFile, "workSleep": workSleep, "workSpin": workSpin, "workCond": workCond, "workTask": workTask, "workYield": workYield, "workSpan": workSpan, "workDatadog": workDatadog,
}

type shared struct {
	running     sync.WaitGroup
	mutex       sync.Mutex
	held        chan struct{}
	values      chan int
	never       chan int
	client      net.Conn
	server      net.Conn
	file        *os.File
	condition   *sync.Cond
	isSignalled bool
}

// runWorkers is the program: a lock with a stall, channels, the network, system calls, sleep, CPU time, a task and regions.
func runWorkers(t testing.TB) func() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	s := &shared{held: make(chan struct{}), values: make(chan int), never: make(chan int), condition: sync.NewCond(&sync.Mutex{})}
	s.client, err = net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	s.server, err = listener.Accept()
	require.NoError(t, err)
	s.file, err = os.Create(t.TempDir() + "/file")
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = s.client.Close()
		_ = s.server.Close()
		_ = s.file.Close()
	})
	return func() {
		for _, work := range workers {
			s.running.Add(1)
			go work(s)
		}
		s.running.Wait()
	}
}

func workHold(s *shared) {
	defer s.running.Done()
	s.mutex.Lock()
	close(s.held)
	time.Sleep(stall)
	s.mutex.Unlock()
}

func workLock(s *shared) {
	defer s.running.Done()
	<-s.held
	s.mutex.Lock()
	defer s.mutex.Unlock()
}

func workReceive(s *shared) {
	defer s.running.Done()
	for range s.values {
		runtime.Gosched()
	}
}

func workSend(s *shared) {
	defer s.running.Done()
	for i := range 200 {
		s.values <- i
		if i%20 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	close(s.values)
}

func workSelect(s *shared) {
	defer s.running.Done()
	select {
	case <-s.never:
	case <-time.After(20 * time.Millisecond):
	}
}

func workRead(s *shared) {
	defer s.running.Done()
	_, _ = io.ReadFull(s.server, make([]byte, 20))
}

func workWrite(s *shared) {
	defer s.running.Done()
	for range 20 {
		time.Sleep(time.Millisecond)
		_, _ = s.client.Write([]byte{1})
	}
}

func workFile(s *shared) {
	defer s.running.Done()
	for i := range 50 {
		_, _ = s.file.WriteAt(make([]byte, 64<<10), int64(i)<<16)
	}
	_ = s.file.Sync()
}

func workSleep(s *shared) {
	defer s.running.Done()
	time.Sleep(30 * time.Millisecond)
}

func workSpin(s *shared) {
	defer s.running.Done()
	for start := time.Now(); time.Since(start) < 40*time.Millisecond; {
		runtime.KeepAlive(make([]byte, 64<<10))
	}
}

func workCond(s *shared) {
	defer s.running.Done()
	s.condition.L.Lock() // which Wait releases
	go func() {
		s.condition.L.Lock()
		s.isSignalled = true
		s.condition.L.Unlock()
		s.condition.Signal()
	}()
	for !s.isSignalled {
		s.condition.Wait()
	}
	s.condition.L.Unlock()
}

func workYield(s *shared) {
	defer s.running.Done()
	for range 100 {
		runtime.Gosched()
	}
}

func workTask(s *shared) {
	defer s.running.Done()
	ctx, task := trace.NewTask(context.Background(), "checkout")
	defer task.End()
	trace.WithRegion(ctx, "outer", func() {
		time.Sleep(2 * time.Millisecond)
		defer trace.StartRegion(ctx, "inner").End()
		done := make(chan struct{})
		go workChild(done)
		time.Sleep(time.Millisecond)
		<-done
	})
	time.Sleep(time.Millisecond)
}

func workChild(done chan struct{}) {
	time.Sleep(3 * time.Millisecond)
	close(done)
}

const (
	traceID = "0102030405060708090a0b0c0d0e0f10"
	spanID  = "1112131415161718"
)

func workSpan(s *shared) {
	defer s.running.Done()
	ctx, task := trace.NewTask(context.Background(), "GET /cart")
	defer task.End()
	trace.Log(ctx, "trace_id", traceID)
	trace.Log(ctx, "span_id", spanID)
	time.Sleep(2 * time.Millisecond)
}

func workDatadog(s *shared) {
	defer s.running.Done()
	ctx, task := trace.NewTask(context.Background(), "GET /cart")
	defer task.End()
	trace.Log(ctx, "datadog.uint64_span_id", "\x01\x02\x00\x00\x00\x00\x00\x00")
	time.Sleep(2 * time.Millisecond)
}
