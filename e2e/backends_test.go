// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // the compression of the OTLP exporter

	"github.com/otelcol-profiles/otelcol-profiles/internal/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
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

// TestBackendsPage validates the configurations in docs/backends.md for our own components.
func TestBackendsPage(t *testing.T) {
	parallel(t)
	path := program(t)
	page, err := os.ReadFile(filepath.Join("..", "docs", "backends.md"))
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)<!-- valid( exporter)? -->\n```yaml\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.GreaterOrEqual(t, len(blocks), 3, "configurations of the page")
	for _, block := range blocks {
		text := block[2]
		if block[1] != "" { // an exporter, for which there must be the rest
			name := regexp.MustCompile(`(?m)^  (\w+):$`).FindStringSubmatch(text)[1]
			text += "receivers: {otlp: {protocols: {grpc: {}}}}\nservice: {pipelines: {profiles: {receivers: [otlp], exporters: [" + name + "]}}}\n"
		}
		requireValid(t, path, text, "OPENOBSERVE_TOKEN=token")
	}
}

// TestBackendConfigurations runs each configuration of config/backends that sends OTLP, pushes profiles, and
// checks what the backend gets by the rules of all backends.
func TestBackendConfigurations(t *testing.T) {
	parallel(t)
	files, err := filepath.Glob(filepath.Join(configs, "backends", "*.yaml"))
	require.NoError(t, err)
	names := []string{"devfiler.yaml", "otlp.yaml"}
	assert.Len(t, files, len(names)+2, "and those of TestPprofBackendsGetTheSumsOfGooglePprof")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			b := startBackend(t)
			m := runConfig(t, program(t), "backends/"+name, env{
				"PPROF_LISTEN": freeAddress(t), "BACKEND_ENDPOINT": b.address, "WINDOW": "300ms",
			})
			for _, p := range payloads(t) {
				if full, _ := profiletest.Soak(t); !full && len(p.data) > 256<<10 {
					continue // a large one takes long to check
				}
				m.push(t, p.service, p.data)
			}
			m.stop(t)
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
