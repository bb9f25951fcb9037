// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Command pprofload pushes pprof files over HTTP, at a given rate or as fast as
// possible, and prints the throughput and latency:
//
//	pprofload -rate 100 -duration 30s cpu.pb.gz heap.pb.gz
//
// Each push has another time, so that none is a duplicate. It exits with 1 if a push was
// not accepted.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/load"
)

func main() {
	o := load.Options{}
	flag.StringVar(&o.URL, "url", "http://localhost:4040/v1/pprof", "URL to push to")
	flag.IntVar(&o.Clients, "clients", 4, "number of connections")
	flag.Float64Var(&o.Rate, "rate", 0, "profiles a second of all clients together; 0: as fast as possible")
	flag.DurationVar(&o.Duration, "duration", 10*time.Second, "duration of the run")
	flag.IntVar(&o.Services, "services", 1, "number of services to push as")
	flag.DurationVar(&o.Timeout, "timeout", 30*time.Second, "timeout of each push")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: pprofload [flags] FILE...\n\nPushes pprof files, gzipped or not, and measures the answers.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := push(o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "pprofload:", err)
		os.Exit(1)
	}
}

func push(o load.Options, files []string) error {
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		body, err := load.NewBody(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		o.Bodies = append(o.Bodies, body)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	result, err := load.Run(ctx, o)
	if err != nil {
		return err
	}
	seconds := result.Elapsed.Seconds()
	fmt.Printf("accepted  %d profiles, %.1f/s\n", result.Accepted(), float64(result.Accepted())/seconds)
	fmt.Printf("bytes     %d sent (%.2f MB/s), %d without compression (%.2f MB/s)\n", result.Bytes, float64(result.Bytes)/seconds/1e6, result.PprofBytes, float64(result.PprofBytes)/seconds/1e6)
	fmt.Printf("answers   p50 %v, p99 %v, slowest %v\n", result.Percentile(50), result.Percentile(99), result.Percentile(100))
	rest := 0
	for _, status := range slices.Sorted(maps.Keys(result.Statuses)) {
		switch n := result.Statuses[status]; {
		case status == 0:
			rest += n
			fmt.Printf("no answer %d times, first: %v\n", n, result.FirstError)
		case status/100 != 2:
			rest += n
			fmt.Printf("status    %d, %d times\n", status, n)
		}
	}
	if rest > 0 {
		return fmt.Errorf("%d of %d pushes were not accepted", rest, rest+result.Accepted())
	}
	return nil
}
