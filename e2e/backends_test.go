// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // the compression of the OTLP exporter

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/pprofservertest"
)

// backend receives OTLP and accepts everything at once.
type backend struct {
	pprofileotlp.UnimplementedGRPCServer
	address string

	mu       sync.Mutex
	received []pprofile.Profiles
	arrived  map[string]time.Time // the first profile of each service
}

// startBackend listens until the test ends.
func startBackend(t testing.TB) *backend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &backend{address: listener.Addr().String(), arrived: map[string]time.Time{}}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(256 << 20))
	pprofileotlp.RegisterGRPCServer(server, b)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return b
}

// Export takes a payload.
func (b *backend) Export(_ context.Context, request pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.received = append(b.received, request.Profiles())
	for _, rp := range request.Profiles().ResourceProfiles().All() {
		if service, _ := rp.Resource().Attributes().Get("service.name"); b.arrived[service.Str()].IsZero() {
			b.arrived[service.Str()] = time.Now()
		}
	}
	return pprofileotlp.NewExportResponse(), nil
}

func (b *backend) services() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.arrived)
}

// TestBackendConfigurations runs each configuration of config/backends and pushes profiles. A backend of OTLP gets payloads that keep
// the rules of all backends, one of pprof the sums of google/pprof.
func TestBackendConfigurations(t *testing.T) {
	parallel(t)
	files, err := filepath.Glob(filepath.Join(configs, "backends", "*.yaml"))
	require.NoError(t, err)
	byOTLP, byPprof := []string{"devfiler.yaml", "otlp.yaml"}, []string{"pyroscope.yaml", "parca.yaml"}
	assert.Len(t, files, len(byOTLP)+len(byPprof))
	// run pushes all profiles, and returns their sums.
	run := func(t *testing.T, name, endpoint string) map[string]map[string]int64 {
		t.Helper()
		m := runConfig(t, program(t), "backends/"+name, env{"PPROF_LISTEN": freeAddress(t), "BACKEND_ENDPOINT": endpoint, "WINDOW": "300ms"})
		sums := map[string]map[string]int64{}
		for _, p := range payloads(t) {
			if full, _ := profiletest.Soak(t); !full && len(p.data) > 256<<10 {
				continue // a large one takes long to check
			}
			m.push(t, p.service, p.data)
			parsed, err := profile.ParseData(p.data)
			require.NoError(t, err)
			if len(parsed.Sample) > 0 {
				sums[p.service] = profiletest.Sums(parsed)
			}
		}
		m.stop(t)
		return sums
	}
	for _, name := range byOTLP {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			b := startBackend(t)
			run(t, name, b.address)
			assert.NotEmpty(t, b.received, "the backend got no profile")
			for _, pd := range b.received {
				message, err := conformance.Marshal(pd)
				require.NoError(t, err)
				assert.Empty(t, faults(conformance.CheckBytes(message)))
				for _, rp := range pd.ResourceProfiles().All() {
					for _, sp := range rp.ScopeProfiles().All() {
						for _, p := range sp.Profiles().All() {
							if name == "otlp.yaml" {
								assert.Empty(t, rejectedByPosition(sp, p), "%v", rp.Resource().Attributes().AsRaw())
							}
						}
					}
				}
			}
		})
	}
	for _, name := range byPprof {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			backend := pprofservertest.Start(t, nil)
			want, got := run(t, name, backend.URL), map[string]map[string]int64{}
			for _, r := range backend.TakeAll() {
				if got[r.Service()] == nil {
					got[r.Service()] = map[string]int64{}
				}
				for sampleType, sum := range pprofservertest.Sums(r) {
					got[r.Service()][sampleType] += sum
				}
			}
			assert.Equal(t, want, got)
		})
	}
}

// rejectedByPosition: the translator of the Contrib repository joins the Profiles of a scope by
// the positions of their samples.
func rejectedByPosition(sp pprofile.ScopeProfiles, p pprofile.Profile) string {
	first := sp.Profiles().At(0).Samples()
	if p.Samples().Len() != first.Len() {
		return fmt.Sprintf("profiles hold varying number of samples: %d and %d", p.Samples().Len(), first.Len())
	}
	for i, s := range p.Samples().All() {
		if s.Values().Len() != 1 {
			return "invalid number of values per sample"
		}
		other := first.At(i)
		if s.StackIndex() != other.StackIndex() || s.LinkIndex() != other.LinkIndex() || !s.AttributeIndices().Equal(other.AttributeIndices()) {
			return fmt.Sprintf("sample %d is another one than in the first profile", i)
		}
	}
	return ""
}
