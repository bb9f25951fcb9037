// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// numbered returns a CPU profile with one value.
func numbered(t *testing.T, value int64) []byte {
	t.Helper()
	function := &profile.Function{ID: 1, Name: "work", SystemName: "work", Filename: "work.go"}
	location := &profile.Location{ID: 1, Line: []profile.Line{{Function: function, Line: 1}}}
	return pprofBytes(t, &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		DurationNanos: 1,
		Function:      []*profile.Function{function},
		Location:      []*profile.Location{location},
		Sample:        []*profile.Sample{{Location: []*profile.Location{location}, Value: []int64{value}}},
	})
}

// TestSidecarsAndGateway pushes real profiles to the sidecars of three instances. The files of the
// gateway hold three times the samples that google/pprof reads, without the instance. The sidecars
// have sent and deleted theirs.
func TestSidecarsAndGateway(t *testing.T) {
	parallel(t)
	const instances = 3
	listen := freeAddress(t)
	g := gateway(t, listen, nil)
	var sidecars []*member
	for i := range instances {
		sidecars = append(sidecars, sidecar(t, t.TempDir(), "checkout", fmt.Sprintf("checkout-%d", i), listen))
	}
	pushed := slices.DeleteFunc(payloads(t), func(p payload) bool { return len(p.data) > 1<<20 })
	all := map[string]int64{}
	for _, p := range pushed {
		for _, e := range p.expected(t).profiles {
			for _, sample := range e.Samples {
				all[p.service+" "+e.Type] += instances * sample.Sum.Int64()
			}
		}
		for _, s := range sidecars {
			s.push(t, p.service, p.data)
		}
	}
	g.awaitSums(t, all)
	for _, s := range sidecars {
		s.awaitSent(t)
		s.stop(t)
		s.requireSums(t, nil)
	}
	g.stop(t)
	g.requireSums(t, all)

	at := byService(g.written(t))
	for _, p := range pushed {
		t.Run(p.service, func(t *testing.T) {
			requireTimes(t, p, instances, at[p.service])
			for _, e := range at[p.service] {
				if instance := resourceAttribute(e, "service.instance.id"); instance != "" {
					t.Errorf("the gateway has a profile of instance %q", instance)
				}
			}
		})
	}
}

// awaitSent waits until no file of a sidecar or agent waits. It fails if none was sent for a minute more
// than gRPC may take to connect again.
func (m *member) awaitSent(t *testing.T) {
	t.Helper()
	for waiting := countFiles(t, m.files); waiting > 0; {
		before := waiting
		m.awaitFor(t, 2*time.Minute+patience, fmt.Sprintf("sent file of %d", before), func() bool {
			waiting = countFiles(t, m.files)
			return waiting < before
		})
	}
	m.await(t, "receiver without files", func() bool { return m.metric(t, "otelcol_receiver_profiles_file_waiting_files") == 0 })
}

func hasFiles(t *testing.T, dir string) bool {
	t.Helper()
	return countFiles(t, dir) > 0
}

// countFiles counts the files in a directory, closed or not, without their indexes.
func countFiles(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return len(slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() || strings.HasSuffix(e.Name(), ".index") }))
}

func byService(profiles []expand.Profile) map[string][]expand.Profile {
	out := map[string][]expand.Profile{}
	for _, e := range profiles {
		out[serviceName(e)] = append(out[serviceName(e)], e)
	}
	return out
}

// requireTimes compares written profiles with n times the samples of a payload.
func requireTimes(t *testing.T, pushed payload, n int, written []expand.Profile) {
	t.Helper()
	want := pushed.expected(t)
	times := make([]expand.Profile, len(want.profiles))
	for i, e := range want.profiles {
		e.Samples = slices.Clone(e.Samples)
		for j, s := range e.Samples {
			more := *s
			more.Sum = new(big.Int).Mul(s.Sum, big.NewInt(int64(n)))
			more.Points = nil
			for _, p := range s.Points {
				more.Points = append(more.Points, slices.Repeat([]expand.Point{p}, n)...)
			}
			e.Samples[j] = &more
		}
		times[i] = e
	}
	for i := range written {
		written[i].Attributes = slices.DeleteFunc(written[i].Attributes, func(a expand.Attribute) bool {
			return a.Key == "profile.temporality"
		})
	}
	if diff := expand.Diff(times, want.normalize(written)); diff != "" {
		t.Error(diff)
	}
}

// TestGatewayMerges checks that profiles of ten instances merge into one. Another service has its
// own, in its own directory.
func TestGatewayMerges(t *testing.T) {
	parallel(t)
	const instances = 10
	listen := freeAddress(t)
	g := gateway(t, listen, env{"WINDOW": "1h", "ACKNOWLEDGE": "on_receive"})
	var sidecars []*member
	for range 2 {
		sidecars = append(sidecars, sidecar(t, t.TempDir(), "unused", "unused", listen))
	}
	for i := range instances {
		query := map[string][]string{"service.name": {"checkout"}, "service.instance.id": {fmt.Sprintf("checkout-%d", i)}}
		if got := sidecars[i%2].do(t, "POST", query, numbered(t, 1)); got.status != 204 {
			t.Fatalf("%d: %s", got.status, got.body)
		}
	}
	sidecars[0].push(t, "cart", numbered(t, 100))
	g.await(t, "profiles", func() bool {
		return g.metric(t, "otelcol_processor_profiles_dedup_incoming_profiles") == instances+1
	})
	for _, s := range sidecars {
		s.stop(t)
	}
	g.stop(t)
	g.requireSums(t, map[string]int64{"checkout cpu": instances, "cart cpu": 100})
	if got := len(g.written(t)); got != 2 {
		t.Errorf("there are %d profiles, want one of each service", got)
	}
}

// TestSidecarStoresWhileGatewayIsAway kills the sidecar while the gateway is away. Its files hold all
// profiles of closed windows. Later the gateway gets each of them once.
func TestSidecarStoresWhileGatewayIsAway(t *testing.T) {
	parallel(t)
	const n = 20
	dir, listen := t.TempDir(), freeAddress(t)
	s := sidecar(t, dir, "checkout", "checkout-0", listen)
	want := map[string]int64{}
	for i := range n {
		service := fmt.Sprintf("service-%d", i)
		s.push(t, service, numbered(t, int64(i+1)))
		want[service+" cpu"] = int64(i + 1)
	}
	s.await(t, "windows passed on", func() bool {
		return s.metric(t, "otelcol_processor_profiles_dedup_outgoing_profiles") == n
	})
	s.requireSums(t, want)
	for _, e := range s.written(t) {
		if got := resourceAttribute(e, "service.instance.id"); got != "checkout-0" {
			t.Errorf("a profile of the sidecar is of instance %q", got)
		}
	}
	s.kill()
	g := gateway(t, listen, nil)
	s = sidecar(t, dir, "checkout", "checkout-0", listen) // repairs its files, too
	g.awaitSums(t, want)
	s.awaitSent(t)
	s.stop(t)
	g.stop(t)
	g.requireSums(t, want)
}

// TestSidecarCountsWhatRetentionRemoves lets retention remove files that wait. Pushes succeed, and the
// files are counted and logged.
func TestSidecarCountsWhatRetentionRemoves(t *testing.T) {
	parallel(t)
	if testing.Short() {
		t.Skip("retention runs every 10 s")
	}
	s := sidecar(t, t.TempDir(), "checkout", "checkout-0", freeAddress(t), "--set=exporters.profiles_file.retention.max_files=4", "--set=receivers.profiles_file.concurrency=4")
	const n, locked = 12, 5 // those being sent, and one that is read
	const removed = n - 4 - locked
	for i := range n {
		s.push(t, "checkout", numbered(t, 1))
		s.await(t, "a file of each window", func() bool { return s.metric(t, "otelcol_exporter_profiles_file_records") == i+1 })
	}
	missing := func() int { return s.metric(t, "otelcol_receiver_profiles_file_files", `outcome="missing"`) }
	s.await(t, "removed files", func() bool { return missing() == removed })
	if got := s.metric(t, "otelcol_exporter_profiles_file_removed_files"); got != removed {
		t.Errorf("the exporter counts %d removed files, want %d", got, removed)
	}
	// A shutdown would remove the files that are no longer in progress.
	if logs := s.kill(); !strings.Contains(logs, "File was removed before it was read") {
		t.Errorf("the log does not say that files were removed:\n%s", logs)
	}
	s.requireSums(t, map[string]int64{"checkout cpu": n - removed})
}

// large returns a profile over 4 MiB as OTLP, the default limit of gRPC servers.
func large(t *testing.T) []byte {
	t.Helper()
	p := &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		DurationNanos: 1,
	}
	for i := range 10_000 {
		name := fmt.Sprintf("%s%d", strings.Repeat("a long name ", 50), i)
		function := &profile.Function{ID: uint64(i + 1), Name: name, SystemName: name}
		location := &profile.Location{ID: uint64(i + 1), Line: []profile.Line{{Function: function}}}
		p.Function, p.Location = append(p.Function, function), append(p.Location, location)
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{location}, Value: []int64{1}})
	}
	return pprofBytes(t, p)
}

// TestLargeWindow exports a window over 4 MiB.
func TestLargeWindow(t *testing.T) {
	parallel(t)
	listen := freeAddress(t)
	g := gateway(t, listen, nil)
	s := sidecar(t, t.TempDir(), "checkout", "checkout-0", listen)
	s.push(t, "checkout", large(t))
	g.awaitSums(t, map[string]int64{"checkout cpu": 10_000})
	s.stop(t)
	g.stop(t)
}

// TestGatewayToBackend exports to a backend that is away at first. Senders keep their profiles until
// it is there, and their retries cause no duplicates.
func TestGatewayToBackend(t *testing.T) {
	parallel(t)
	front, back := freeAddress(t), freeAddress(t)
	g := gateway(t, front, env{"EXPORTER": "otlp_grpc", "BACKEND_ENDPOINT": back}, "--set=exporters.otlp_grpc.timeout=1s") // longer than a window
	want := map[string]int64{"checkout cpu": 0}
	var sidecars []*member
	for i := range 3 {
		s := sidecar(t, t.TempDir(), "checkout", fmt.Sprintf("checkout-%d", i), front, "--set=exporters.otlp_grpc.timeout=1s")
		s.push(t, "checkout", numbered(t, int64(1)<<i))
		want["checkout cpu"] += int64(1) << i
		sidecars = append(sidecars, s)
	}
	g.await(t, "retries", func() bool { return g.metric(t, "otelcol_processor_profiles_dedup_retries") > 3 })
	backend := gateway(t, back, nil)
	backend.awaitSums(t, want)
	for _, s := range sidecars {
		s.stop(t)
	}
	g.stop(t)
	backend.stop(t)
	backend.requireSums(t, want)
}

// TestGatewayForwards acknowledges profiles while the backend is away, and sends them later, also after
// a crash.
func TestGatewayForwards(t *testing.T) {
	parallel(t)
	front, back, data, http := freeAddress(t), freeAddress(t), t.TempDir(), freeAddress(t)
	begin := func() *member {
		g := runConfig(t, program(t), "gateway-forward.yaml", env{
			"DATA_DIR": data, "OTLP_GRPC_LISTEN": front, "OTLP_HTTP_LISTEN": http, "BACKEND_ENDPOINT": back, "WINDOW": "300ms",
		}, quick["gateway-forward.yaml"]...)
		g.url = "http://" + http
		return g
	}
	g := begin()
	want := map[string]int64{}
	for i := range 20 {
		service := fmt.Sprintf("service-%d", i)
		g.sendOTLP(t, numbered(t, int64(i+1)), service, "1")
		want[service+" cpu"] = int64(i + 1)
	}
	g.kill()
	backend := gateway(t, back, nil)
	g = begin()
	backend.awaitSums(t, want)
	g.awaitSent(t)
	g.stop(t)
	backend.stop(t)
	backend.requireSums(t, want)
}

// TestGatewayKillLosesNothing kills the gateway repeatedly while a sidecar exports to it. The files
// of the gateway hold all acknowledged profiles; those in flight at a kill may be there twice.
func TestGatewayKillLosesNothing(t *testing.T) {
	parallel(t)
	rounds := 3
	if full, _ := profiletest.Soak(t); full {
		rounds = 50
	}
	const each = 10
	listen, data := freeAddress(t), t.TempDir()
	s := sidecar(t, t.TempDir(), "checkout", "checkout-0", listen,
		"--set=processors.profiles_dedup.window=20ms", "--set=exporters.otlp_grpc.timeout=1s")
	want := map[string]bool{}
	begin := func() *member { return gateway(t, listen, env{"DATA_DIR": data, "WINDOW": "50ms"}) }
	var g *member
	for round := range rounds {
		g = begin()
		for i := range each {
			service := fmt.Sprintf("service-%d-%d", round, i)
			s.push(t, service, numbered(t, 1))
			want[service+" cpu"] = true
			time.Sleep(10 * time.Millisecond)
		}
		g.kill()
	}
	g = begin()
	g.await(t, "all services", func() bool { return len(totalsOf(g.written(t))) == len(want) })
	s.stop(t)
	g.stop(t)
	twice := 0
	for service, sum := range totalsOf(g.written(t)) {
		if !want[service] || sum < 1 {
			t.Errorf("%s has %d", service, sum)
		}
		if sum > 1 {
			twice++
		}
	}
	t.Logf("%d kills, %d profiles, %d of them were written more than once", rounds, len(want), twice)
}
