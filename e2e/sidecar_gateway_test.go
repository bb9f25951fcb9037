// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// numbered returns a CPU profile with one value.
func numbered(t *testing.T, value int64) []byte {
	t.Helper()
	function := &profile.Function{ID: 1, Name: "work", SystemName: "work", Filename: "work.go"}
	location := &profile.Location{ID: 1, Line: []profile.Line{{Function: function, Line: 1}}}
	return profiletest.Pprof(t, &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		DurationNanos: 1,
		Function:      []*profile.Function{function},
		Location:      []*profile.Location{location},
		Sample:        []*profile.Sample{{Location: []*profile.Location{location}, Value: []int64{value}}},
	})
}

// TestSidecarsAndGateway pushes real profiles to the sidecars of three instances. The files of the
// gateway hold three times the samples that google/pprof reads, by service, and without the instance for intervals: the
// sidecars send the names of services as references. They have sent and deleted their files.
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
			found := map[string]map[string]bool{} // instances by sample type
			for _, e := range at[p.service] {
				if found[e.Type] == nil {
					found[e.Type] = map[string]bool{}
				}
				found[e.Type][resourceAttribute(e, "service.instance.id")] = true
			}
			for sampleType, of := range found {
				switch {
				case of[""], sampleType == "cpu":
					assert.Equal(t, map[string]bool{"": true}, of, "%s: intervals of all instances are one", sampleType)
				default:
					assert.Len(t, of, instances, "%s: readers add up the last snapshot of each instance", sampleType)
				}
			}
		})
	}
}

// drop puts a pprof into a directory of files of a service, as a whole.
func drop(t *testing.T, dir, service, name string, data []byte) {
	t.Helper()
	path := filepath.Join(dir, service, name)
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path+".tmp", data, 0o600), os.Rename(path+".tmp", path))
	assert.NoError(t, err)
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

// countFiles counts the files below a directory, closed or not.
func countFiles(t *testing.T, dir string) int {
	t.Helper()
	return len(filesIn(t, dir))
}

func byService(profiles []expand.Profile) map[string][]expand.Profile {
	out := map[string][]expand.Profile{}
	for _, e := range profiles {
		out[resourceAttribute(e, "service.name")] = append(out[resourceAttribute(e, "service.name")], e)
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
			return a.Key == attrkey.Temporality
		})
	}
	assert.Empty(t, expand.Diff(times, want.normalize(written)))
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
