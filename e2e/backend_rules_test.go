// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // the compression of the OTLP exporter

	"github.com/otelcol-profiles/otelcol-profiles/internal/conformance"
)

// everyBackend are the rules that the format does not enforce, and that all output keeps:
// backends reject or misread payloads that break them.
var everyBackend = []conformance.Rule{conformance.EmptyProfile, conformance.SampleOrder, conformance.SampleTypes}

// faults returns the findings that break the format or one of the rules.
func faults(report *conformance.Report, rules ...conformance.Rule) (found []string) {
	for _, f := range report.Findings {
		if !f.IsWarning() || slices.Contains(rules, f.Rule) {
			found = append(found, f.String())
		}
	}
	return found
}

// backend is a receiver of OTLP that stands for one backend. It accepts everything, and check
// says what the backend would not.
type backend struct {
	pprofileotlp.UnimplementedGRPCServer
	address string
	// rejects returns why the backend would reject a Profile, or "".
	rejects func(pd pprofile.Profiles, sp pprofile.ScopeProfiles, p pprofile.Profile) string

	mu       sync.Mutex
	received []pprofile.Profiles
	texts    int // names of services that were not references into the string table
}

// startBackend listens until the test ends.
func startBackend(t *testing.T, b *backend) *backend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b.address = listener.Addr().String()
	server := grpc.NewServer(grpc.MaxRecvMsgSize(256<<20), grpc.UnaryInterceptor(b.countTexts))
	pprofileotlp.RegisterGRPCServer(server, b)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return b
}

// countTexts sees a request as it was sent, before pdata resolves references.
func (b *backend) countTexts(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	sent := request.(interface {
		SizeProto() int
		MarshalProto(to []byte) int
	})
	message := make([]byte, sent.SizeProto())
	sent.MarshalProto(message)
	b.mu.Lock()
	b.texts += bytes.Count(message, []byte("service.name")) - 1 // the one in the string table
	b.mu.Unlock()
	return next(ctx, request)
}

// Export takes a payload.
func (b *backend) Export(_ context.Context, request pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.received = append(b.received, request.Profiles())
	return pprofileotlp.NewExportResponse(), nil
}

// check returns the faults of each service, and of payloads as a whole under "".
func (b *backend) check(t *testing.T) map[string][]string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	found := map[string][]string{}
	for _, pd := range b.received {
		for _, rp := range pd.ResourceProfiles().All() {
			service := ""
			if name, ok := rp.Resource().Attributes().Get("service.name"); ok {
				service = name.AsString()
			}
			for _, sp := range rp.ScopeProfiles().All() {
				for _, p := range sp.Profiles().All() {
					if b.rejects == nil {
						continue
					}
					if why := b.rejects(pd, sp, p); why != "" {
						found[service] = append(found[service], why)
					}
				}
			}
		}
		message, err := conformance.Marshal(pd)
		require.NoError(t, err)
		found[""] = append(found[""], faults(conformance.CheckBytes(message), everyBackend...)...)
	}
	return found
}

// rejectedByPosition: the translator of the Contrib repository joins the Profiles of a scope by
// the positions of their samples.
func rejectedByPosition(_ pprofile.Profiles, sp pprofile.ScopeProfiles, p pprofile.Profile) string {
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
