// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// A program that uses a core and allocates, and serves profiles and the counters of Go's runtime. It prints its address.
package main

import (
	_ "expvar"
	"fmt"
	"log"
	"net"
	"net/http"
	_ "net/http/pprof"
	"runtime"
	"time"
)

func init() { runtime.MemProfileRate = 64 << 10 } // chance is then far below what a test tolerates

var (
	sum  uint64
	kept [64][]byte
)

// use keeps a core busy: of what works for less than the 10 ms between samples, chance has a larger part.
func use() {
	for i := uint64(0); ; i++ {
		sum = sum*31 + i
	}
}

func allocate() {
	for i := 0; ; i++ {
		kept[i%len(kept)] = make([]byte, 1<<10<<(i%5))
		if i%50 == 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go use()
	go allocate()
	fmt.Println(listener.Addr())
	log.Fatal(http.Serve(listener, nil)) // #nosec G114 -- of tests
}
