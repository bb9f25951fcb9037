// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/pprof/profile"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compact"
)

// BenchmarkPyroscope pushes what eight services push in four hours to the program with its default configuration, and to the program
// in PYROSCOPE_BIN, by the same client. It compares CPU time, bytes on disk, and the pprof of one service in a new process. Each half
// minute a service has a CPU profile and a heap, of 100 of its 2,000 stacks. A step of the day takes a window here, and files close
// after as many windows as in their 15 minutes, so that a record has the profiles of half a minute.
func BenchmarkPyroscope(b *testing.B) {
	pyroscope := os.Getenv("PYROSCOPE_BIN")
	if pyroscope == "" {
		b.Skip("PYROSCOPE_BIN is not set")
	}
	steps := historySteps(b)
	push := func(b *testing.B, start func() *historyServer, files string) {
		b.Helper()
		s := start()
		pushHistory(b, s.url, steps)
		used := s.cpu(b)
		s.end(b)
		b.ReportMetric(milliseconds(used)/float64(len(steps)*2*benchServices), "push-cpu-ms")
		b.ReportMetric(float64(bytesOf(b, files))/1e6, "closed-MB")
		queryHistory(b, start, "closed")
		b.ReportMetric(0, "ns/op")
	}
	b.Run("ours", func(b *testing.B) {
		files := filepath.Join(b.TempDir(), "profiles")
		start := func() *historyServer { return startOurs(b, files) }
		push(b, start, files)
		compactHistory(b, files)
		b.ReportMetric(float64(bytesOf(b, files))/1e6, "compacted-MB")
		queryHistory(b, start, "compacted")
	})
	b.Run("pyroscope", func(b *testing.B) {
		files := b.TempDir()
		push(b, func() *historyServer { return startPyroscope(b, pyroscope, files) }, files)
	})
}

// historyServer is a program that profiles are pushed to and queried from.
type historyServer struct {
	*measured
	query string // URL of its queries
}

// end ends the program, which writes what it has in memory.
func (s *historyServer) end(b *testing.B) {
	b.Helper()
	require.NoError(b, s.command.Process.Signal(syscall.SIGTERM))
	select {
	case exit := <-s.exited:
		require.NoError(b, exit, s.logs)
	case <-time.After(patience):
		b.Fatalf("the program has not ended\n%s", s.kill())
	}
}

const (
	historyHours = 4
	historyStep  = 30 * time.Second
	// historyWindow is the window of the processor, in which a step is pushed.
	historyWindow = 50 * time.Millisecond
	historyType   = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
)

// historyPush is one push of a service.
type historyPush struct {
	service, name string
	pprof         []byte
}

// historySteps returns what is pushed together.
func historySteps(b *testing.B) [][]historyPush {
	b.Helper()
	w := profiletest.Workloads()[0]
	w.Samples, w.Functions = 2000, 500
	steps := make([][]historyPush, int(historyHours*time.Hour/historyStep))
	begin := time.Now().Add(-historyHours * time.Hour).Truncate(historyStep)
	for seed := range uint64(benchServices) {
		program, zipf := w.Pprof(seed), rand.NewZipf(profiletest.NewRand(seed), 1.1, 50, uint64(w.Samples-1))
		all := program.Sample
		for i := range steps {
			for _, name := range []string{"process_cpu", "memory"} {
				chosen := map[uint64]bool{}
				for len(chosen) < 100 {
					chosen[zipf.Uint64()] = true
				}
				program.Sample = nil
				for _, i := range slices.Sorted(maps.Keys(chosen)) {
					program.Sample = append(program.Sample, all[i])
				}
				p := program.Compact()
				p.TimeNanos = begin.Add(time.Duration(i) * historyStep).UnixNano()
				if name == "memory" {
					p.SampleType = []*profile.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}}
					p.PeriodType, p.DurationNanos = &profile.ValueType{Type: "space", Unit: "bytes"}, 0
				}
				steps[i] = append(steps[i], historyPush{fmt.Sprint("service-", seed), name, profiletest.Gzip(b, profiletest.Pprof(b, p))})
			}
		}
	}
	return steps
}

func pushHistory(b *testing.B, url string, steps [][]historyPush) {
	b.Helper()
	pusher := pushv1connect.NewPusherServiceClient(http.DefaultClient, url)
	for _, step := range steps {
		start := time.Now()
		var pushes sync.WaitGroup
		for _, push := range step {
			pushes.Go(func() {
				_, err := pusher.Push(b.Context(), connect.NewRequest(&pushv1.PushRequest{Series: []*pushv1.RawProfileSeries{{
					Labels: []*typesv1.LabelPair{
						{Name: "__name__", Value: push.name}, {Name: "service_name", Value: push.service}, {Name: "pod", Value: push.service + "-0"},
					},
					Samples: []*pushv1.RawSample{{RawProfile: push.pprof}},
				}}}))
				if err != nil {
					b.Error(err)
				}
			})
		}
		pushes.Wait()
		time.Sleep(historyWindow - time.Since(start))
	}
}

// queryHistory asks for the pprof of one service, each time in a new process.
func queryHistory(b *testing.B, start func() *historyServer, state string) {
	b.Helper()
	const runs = 5
	var colds, warms, cpus []float64
	for range runs {
		s := start()
		ask := func() float64 {
			began := time.Now()
			q := querierv1connect.NewQuerierServiceClient(http.DefaultClient, s.query)
			answer, err := q.SelectMergeProfile(b.Context(), connect.NewRequest(&querierv1.SelectMergeProfileRequest{ //nolint:staticcheck // Pyroscope 1.6 has no other
				ProfileTypeID: historyType, LabelSelector: `{service_name="service-3"}`,
				Start: time.Now().Add(-2 * historyHours * time.Hour).UnixMilli(), End: time.Now().UnixMilli(),
			}))
			require.NoError(b, err)
			require.Greater(b, len(answer.Msg.Sample), 1000)
			return milliseconds(time.Since(began))
		}
		before := s.cpu(b)
		colds = append(colds, ask())
		cpus = append(cpus, milliseconds(s.cpu(b)-before))
		warms = append(warms, ask())
		s.end(b)
	}
	b.ReportMetric(median(colds), state+"-cold-ms")
	b.ReportMetric(median(cpus), state+"-cold-cpu-ms")
	b.ReportMetric(median(warms), state+"-warm-ms")
}

// compactHistory compacts a directory as two days later.
func compactHistory(b *testing.B, files string) {
	b.Helper()
	c := compact.New(compact.Options{
		Directory: files, After: time.Hour, Resolutions: []time.Duration{time.Minute, 10 * time.Minute}, MaxMemory: 64 << 20,
		Compacted: func(compact.Result) {}, Skipped: func(path string, err error) { b.Error(path, err) }, Damaged: func(path string) { b.Error(path) },
		Now: func() time.Time { return time.Now().Add(48 * time.Hour) },
	})
	for range 3 { // hours, the day, and what they were made of
		require.NoError(b, c.Run(b.Context()))
	}
}

func bytesOf(b *testing.B, directory string) (size int64) {
	b.Helper()
	require.NoError(b, filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.Contains(path, "service.name=otelcol-profiles") {
			return err
		}
		info, err := entry.Info()
		size += info.Size()
		return err
	}))
	return size
}

// startOurs runs the default configuration, without profiles of itself.
func startOurs(b *testing.B, files string) *historyServer {
	b.Helper()
	push, view := freeAddress(b), freeAddress(b)
	c := launch(b, program(b), []string{"PROFILES_DIR=" + files, "PPROF_LISTEN=" + push, "VIEW_LISTEN=" + view, "HEALTH_LISTEN=" + freeAddress(b)},
		"--set=service.telemetry.metrics.level=none", "--set=receivers.pprof.self.collection_interval=24h",
		fmt.Sprint("--set=processors.profiles_dedup.window=", historyWindow), "--set=exporters.profiles_file.rotation.max_records=30")
	c.url = "http://" + push
	c.awaitReady(b)
	return &historyServer{measure(b, c), "http://" + view}
}

// startPyroscope runs Pyroscope as one process, without its profiles of itself.
func startPyroscope(b *testing.B, path, dir string) *historyServer {
	b.Helper()
	listen := []string{freeAddress(b), freeAddress(b), freeAddress(b)}
	args := []string{
		"-target=all", "-self-profiling.disable-push", "-usage-stats.enabled=false", "-validation.reject-older-than=0", "-distributor.ingestion-rate-limit-mb=1000",
		"-distributor.ingestion-burst-size-mb=1000", "-pyroscopedb.data-path=" + dir + "/data", "-storage.filesystem.dir=" + dir + "/shared",
		"-compactor.data-dir=" + dir + "/compactor", "-memberlist.advertise-addr=127.0.0.1",
	}
	for _, flag := range []string{
		"server.http-listen-address", "server.grpc-listen-address", "memberlist.bind-addr", "query-scheduler.ring.instance-addr", "query-frontend.instance-addr",
		"ingester.lifecycler.addr", "distributor.ring.instance-addr", "compactor.ring.instance-addr", "overrides-exporter.ring.instance-addr",
		"store-gateway.sharding-ring.instance-addr",
	} {
		args = append(args, "-"+flag+"=127.0.0.1")
	}
	for _, ring := range []string{"ring", "distributor.ring", "compactor.ring", "query-scheduler.ring", "overrides-exporter.ring", "store-gateway.sharding-ring"} {
		args = append(args, "-"+ring+".store=inmemory")
	}
	for i, flag := range []string{"server.http-listen-port", "server.grpc-listen-port", "memberlist.bind-port"} {
		args = append(args, "-"+flag+"="+listen[i][strings.LastIndexByte(listen[i], ':')+1:])
	}
	c := launch(b, path, []string{"GODEBUG=httpmuxgo121=1"}, args...)
	c.url = "http://" + listen[0]
	c.await(b, "answer", func() bool { // of a time before
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		q := querierv1connect.NewQuerierServiceClient(http.DefaultClient, c.url)
		before := time.Now().Add(-24 * time.Hour).UnixMilli()
		_, err := q.SelectMergeProfile(ctx, connect.NewRequest(&querierv1.SelectMergeProfileRequest{ //nolint:staticcheck // as in queryHistory
			ProfileTypeID: historyType, LabelSelector: "{}", Start: before, End: before + 1000,
		}))
		return err == nil
	})
	return &historyServer{measure(b, c), c.url}
}
