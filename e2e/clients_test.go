// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	_ "github.com/DataDog/dd-trace-go/v2/profiler" // for the programs of TestClientExamples
	_ "github.com/grafana/pyroscope-go"            // for the programs of TestClientExamples
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// TestClientExamples builds the programs in docs/push-protocols.md, with the clients of Pyroscope and Datadog, runs them against the
// default configuration until Ctrl+C, and finds their profiles in the files.
func TestClientExamples(t *testing.T) {
	parallel(t)
	page, err := os.ReadFile(filepath.Join("..", "docs", "push-protocols.md"))
	require.NoError(t, err)
	examples := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindAllSubmatch(page, -1)
	require.Len(t, examples, 2, "programs of the page")
	for _, example := range examples {
		t.Run(regexp.MustCompile(`pyroscope|datadog`).FindString(strings.ToLower(string(example[1]))), func(t *testing.T) {
			parallel(t)
			c, addresses := runDefaultConfig(t)
			source := filepath.Join(t.TempDir(), "main.go")
			text := strings.ReplaceAll(string(example[1]), "localhost:4040", addresses["localhost:4040"])
			require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
			client := strings.TrimSuffix(source, ".go")
			// In this directory, whose go.mod has the clients.
			if out, err := exec.Command("go", "build", "-o", client, source).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			command := exec.Command(client)
			command.Env = append(os.Environ(), "DD_PROFILING_FLUSH_ON_EXIT=true", "DD_INSTRUMENTATION_TELEMETRY_ENABLED=false", "DD_REMOTE_CONFIGURATION_ENABLED=false")
			program := begin(t, command)
			time.Sleep(3 * time.Second) // of work
			require.NoError(t, command.Process.Signal(os.Interrupt))
			select {
			case err := <-program.exited:
				require.NoError(t, err, "%s", program.logs)
			case <-time.After(patience):
				t.Fatalf("the client does not end\n%s", program.logs)
			}
			c.stop(t)
			profileTypes := map[string]bool{}
			for _, p := range byService(readProfiles(t, c.files))["checkout"] {
				profileTypes[expand.Text(p.Scope.Attributes, attrkey.ProfileType)] = true
				assert.Equal(t, "eu", resourceAttribute(p, "region"))
				assert.Equal(t, "go", resourceAttribute(p, "process.runtime.name"))
				assert.NotEmpty(t, resourceAttribute(p, "service.instance.id"))
				assert.NotZero(t, p.Time)
			}
			assert.Contains(t, profileTypes, "cpu", "%s\n%s", program.logs, c.logs)
			if isDatadog := strings.Contains(text, "dd-trace-go"); isDatadog { // which sends an execution trace first
				assert.Contains(t, profileTypes, "goroutine_time", "%s\n%s", program.logs, c.logs)
			}
		})
	}
}

// TestPyroscopeConnect pushes with Pyroscope's generated client, which Alloy uses, in each
// encoding.
func TestPyroscopeConnect(t *testing.T) {
	parallel(t)
	c := start(t, "0s", "")
	encodings := map[string][]connect.ClientOption{
		"protobuf":          nil,
		"protobuf, gzipped": {connect.WithSendGzip()},
		"JSON":              {connect.WithProtoJSON()},
		"JSON, gzipped":     {connect.WithProtoJSON(), connect.WithSendGzip()},
	}
	for name, options := range encodings {
		client := pushv1connect.NewPusherServiceClient(http.DefaultClient, c.url, options...)
		push := func(series ...*pushv1.RawProfileSeries) error {
			_, err := client.Push(t.Context(), connect.NewRequest(&pushv1.PushRequest{Series: series}))
			return err
		}
		var all []*pushv1.RawProfileSeries
		for kind, data := range own {
			all = append(all, &pushv1.RawProfileSeries{
				Labels:  []*typesv1.LabelPair{{Name: "__name__", Value: kind}, {Name: "service_name", Value: name + "/" + kind}},
				Samples: []*pushv1.RawSample{{RawProfile: data, ID: "734FD599-6865-419E-9475-932762D8F469"}},
			})
		}
		require.NoError(t, push(all...), name)
		bad := &pushv1.RawProfileSeries{Samples: []*pushv1.RawSample{{RawProfile: []byte("hello")}}}
		assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(push(bad)), "a text, by %s", name)
	}
	c.stop(t)
	written := byService(readProfiles(t, c.files))
	for name := range encodings {
		for kind, data := range own {
			requireTimes(t, payload{"own/" + kind, data}, 1, written[name+"/"+kind])
		}
	}
}
