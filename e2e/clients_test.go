// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// sums returns the sum of a sample type over all samples with the function in their stack.
func sums(profiles []expand.Profile, sampleType, function string) int64 {
	var sum int64
	for _, e := range profiles {
		for _, s := range e.Samples {
			if e.Type == sampleType && hasFunction(s, function) {
				sum += s.Sum.Int64()
			}
		}
	}
	return sum
}

func hasFunction(s *expand.Sample, function string) bool {
	for _, frame := range s.Stack {
		for _, line := range frame.Lines {
			if strings.HasSuffix(line.Function, "."+function) {
				return true
			}
		}
	}
	return false
}

func attributesOf(attributes []expand.Attribute) map[string]string {
	values := map[string]string{}
	for _, a := range attributes {
		values[a.Key] = fmt.Sprint(a.Value)
	}
	return values
}

// requireWork checks that the profiles show the work of the client.
func requireWork(t *testing.T, profiles []expand.Profile, kinds ...string) {
	t.Helper()
	for _, row := range []struct{ sampleType, function string }{
		{"cpu", "burnCPU"}, {"samples", "burnCPU"},
		{"alloc_space", "keepMemory"}, {"alloc_objects", "keepMemory"},
		{"inuse_space", "keepMemory"}, {"inuse_objects", "keepMemory"},
		{"contentions", "fightForLock.func1"}, {"delay", "fightForLock.func1"},
		{"goroutine", "clientWork"},
	} {
		assert.Positive(t, sums(profiles, row.sampleType, row.function), "the sum of %s in %s", row.sampleType, row.function)
	}
	found := map[string]bool{}
	labelled := false
	for _, e := range profiles {
		found[attributesOf(e.Scope.Attributes)["profile.type"]] = true
		assert.Equal(t, clientService, resourceAttribute(e, "service.name"), "service.name")
		assert.Equal(t, "eu", resourceAttribute(e, "region"), "region")
		assert.NotZero(t, e.Time, "%s has no time", e.Type)
		for _, s := range e.Samples {
			labelled = labelled || attributesOf(s.Attributes)["request"] == "burn" && hasFunction(s, "burnCPU")
		}
	}
	assert.True(t, labelled, "no sample of burnCPU has the label of its request")
	assert.True(t, slices.Equal(slices.Sorted(maps.Keys(found)), kinds), "the kinds must be %q", kinds)
}

// runClient runs a client until it has pushed all its profiles, and returns those in the files.
func runClient(t *testing.T, name string) []expand.Profile {
	t.Helper()
	c := start(t, "0s", "    compression: zstd")
	runClientProgram(t, name, strings.TrimPrefix(c.url, "http://"))
	c.stop(t)
	return readProfiles(t, c.files)
}

func TestPyroscopeGo(t *testing.T) {
	parallel(t)
	profiles := runClient(t, "pyroscope-go")
	requireWork(t, profiles, "block", "cpu", "goroutine", "heap", "mutex")
	for _, e := range profiles {
		resource := attributesOf(e.Resource.Attributes)
		if resource["service.instance.id"] == "" || resource["pyroscope.spy"] != "gospy" || resource["process.runtime.name"] != "go" {
			t.Errorf("the resource is %v", resource)
		}
	}
}

func TestDatadogGo(t *testing.T) {
	parallel(t)
	profiles := runClient(t, "dd-trace-go")
	requireWork(t, profiles, "block", "cpu", "goroutine", "heap", "mutex")
	for _, e := range profiles {
		resource := attributesOf(e.Resource.Attributes)
		if resource["deployment.environment.name"] != "test" || resource["service.version"] != "1.2.3" ||
			resource["process.runtime.name"] != "go" || resource["service.instance.id"] == "" || resource["process.pid"] == "" {
			t.Errorf("the resource is %v", resource)
		}
		if isDelta := attributesOf(e.Attributes)["profile.temporality"] == "delta"; isDelta && e.Duration == 0 {
			t.Errorf("a delta of %s has no duration", e.Type)
		}
	}
}

// TestPyroscopeConnect pushes with Pyroscope's generated client, which Alloy uses, in each
// encoding.
func TestPyroscopeConnect(t *testing.T) {
	parallel(t)
	for name, options := range map[string][]connect.ClientOption{
		"protobuf":          nil,
		"protobuf, gzipped": {connect.WithSendGzip()},
		"JSON":              {connect.WithProtoJSON()},
		"JSON, gzipped":     {connect.WithProtoJSON(), connect.WithSendGzip()},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			c := start(t, "0s", "    compression: none")
			client := pushv1connect.NewPusherServiceClient(http.DefaultClient, c.url, options...)
			push := func(series ...*pushv1.RawProfileSeries) error {
				_, err := client.Push(t.Context(), connect.NewRequest(&pushv1.PushRequest{Series: series}))
				return err
			}
			var all []*pushv1.RawProfileSeries
			for kind, data := range own {
				all = append(all, &pushv1.RawProfileSeries{
					Labels:  []*typesv1.LabelPair{{Name: "__name__", Value: kind}, {Name: "service_name", Value: "own/" + kind}},
					Samples: []*pushv1.RawSample{{RawProfile: data, ID: "734FD599-6865-419E-9475-932762D8F469"}},
				})
			}
			require.NoError(t, push(all...))
			bad := &pushv1.RawProfileSeries{Samples: []*pushv1.RawSample{{RawProfile: []byte("hello")}}}
			assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(push(bad)), "a text")
			c.stop(t)
			written := byService(readProfiles(t, c.files))
			for kind, data := range own {
				requireTimes(t, payload{"own/" + kind, data}, 1, written["own/"+kind])
			}
		})
	}
}
