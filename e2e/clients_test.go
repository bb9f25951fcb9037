// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/pprof/profile"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// recorder is a proxy between a client and the collector that keeps all requests.
type recorder struct {
	server *httptest.Server
	mu     sync.Mutex
	passed []passed
}

// passed is a request and the status of its response.
type passed struct {
	path, query, contentType string
	body                     []byte
	status                   int
}

func record(t *testing.T, c *collector) *recorder {
	t.Helper()
	target, err := url.Parse(c.url)
	require.NoError(t, err)
	r := &recorder{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(response *http.Response) error {
		body, err := response.Request.GetBody()
		if err != nil {
			return err
		}
		content, err := io.ReadAll(body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.passed = append(r.passed, passed{response.Request.URL.Path, response.Request.URL.RawQuery, response.Request.Header.Get("Content-Type"), content, response.StatusCode})
		return err
	}
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		request.Body, _ = request.GetBody()
		proxy.ServeHTTP(w, request)
	}))
	t.Cleanup(r.server.Close)
	return r
}

func (r *recorder) address() string { return r.server.Listener.Addr().String() }

// sentProfile is a pprof in a recorded request.
type sentProfile struct {
	request int // its number
	file    string
	profile *profile.Profile
}

// profiles returns the pprofs in the forms of all requests to path. Each request must have been
// answered with status.
func (r *recorder) profiles(t *testing.T, path string, status int) []sentProfile {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var sent []sentProfile
	for i, request := range r.passed {
		if request.path != path {
			continue
		}
		if request.status != status {
			t.Errorf("%s?%s was answered with %d, want %d", request.path, request.query, request.status, status)
			continue
		}
		_, parameters, err := mime.ParseMediaType(request.contentType)
		require.NoError(t, err)
		form := multipart.NewReader(bytes.NewReader(request.body), parameters["boundary"])
		for {
			part, err := form.NextPart()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			body, err := io.ReadAll(part)
			require.NoError(t, err)
			if !strings.HasSuffix(part.FileName(), ".pprof") {
				continue
			}
			if bytes.HasPrefix(body, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
				r, err := zstd.NewReader(bytes.NewReader(body))
				require.NoError(t, err)
				if body, err = io.ReadAll(r); err != nil {
					t.Fatal(err)
				}
				r.Close()
			}
			parsed, err := profile.ParseData(body)
			require.NoError(t, err, "%s", part.FileName())
			sent = append(sent, sentProfile{i, part.FileName(), parsed})
		}
	}
	return sent
}

// asArrived removes attributes that the receiver adds.
func asArrived(profiles []expand.Profile) []expand.Profile {
	profiles = slices.Clone(profiles)
	for i := range profiles {
		profiles[i].Attributes = slices.DeleteFunc(slices.Clone(profiles[i].Attributes), func(a expand.Attribute) bool {
			return a.Key == "profile.temporality" || strings.HasPrefix(a.Key, "pyroscope.")
		})
	}
	options := expand.AsPprof
	options.IgnoreZeroSamples, options.IgnoreTime = true, true
	return slices.DeleteFunc(expand.Normalize(profiles, options), func(p expand.Profile) bool { return len(p.Samples) == 0 })
}

// requireAllArrived matches each sent profile with one written record. It needs a window of 0s.
func requireAllArrived(t *testing.T, sent []sentProfile, records [][]expand.Profile) {
	t.Helper()
	var written [][]expand.Profile
	for _, record := range records {
		if arrived := asArrived(record); len(arrived) > 0 {
			written = append(written, arrived)
		}
	}
	for _, s := range sent {
		want := asArrived(expand.Pprof(s.profile))
		if len(want) == 0 {
			continue
		}
		found := slices.IndexFunc(written, func(got []expand.Profile) bool { return expand.Diff(want, got) == "" })
		if found < 0 {
			t.Errorf("%s of request %d (%d samples of %q) has not arrived as it was sent", s.file, s.request, len(s.profile.Sample), types(want))
			continue
		}
		written = slices.Delete(written, found, found+1)
	}
	assert.Empty(t, written, "profiles were written that nobody sent")
	assert.NotEmpty(t, sent, "no profile was sent")
	t.Logf("%d profiles arrived as they were sent", len(sent))
}

// sums returns the sum of a sample type over all samples with the function in their stack.
func sums(records [][]expand.Profile, sampleType, function string) int64 {
	var sum int64
	for _, record := range records {
		for _, e := range record {
			if e.Type != sampleType {
				continue
			}
			for _, s := range e.Samples {
				if hasFunction(s, function) {
					sum += s.Sum.Int64()
				}
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
func requireWork(t *testing.T, records [][]expand.Profile, kinds ...string) {
	t.Helper()
	for _, row := range []struct{ sampleType, function string }{
		{"cpu", "burnCPU"}, {"samples", "burnCPU"},
		{"alloc_space", "keepMemory"}, {"alloc_objects", "keepMemory"},
		{"inuse_space", "keepMemory"}, {"inuse_objects", "keepMemory"},
		{"contentions", "fightForLock.func1"}, {"delay", "fightForLock.func1"},
		{"goroutine", "clientWork"},
	} {
		assert.Positive(t, sums(records, row.sampleType, row.function), "the sum of %s in %s", row.sampleType, row.function)
	}
	found := map[string]bool{}
	labelled := false
	for _, record := range records {
		for _, e := range record {
			found[attributesOf(e.Scope.Attributes)["profile.type"]] = true
			assert.Equal(t, clientService, resourceAttribute(e, "service.name"), "service.name")
			assert.Equal(t, "eu", attributesOf(e.Resource.Attributes)["region"], "region")
			assert.NotZero(t, e.Time, "%s has no time", e.Type)
			for _, s := range e.Samples {
				labelled = labelled || attributesOf(s.Attributes)["request"] == "burn" && hasFunction(s, "burnCPU")
			}
		}
	}
	assert.True(t, labelled, "no sample of burnCPU has the label of its request")
	assert.True(t, slices.Equal(slices.Sorted(maps.Keys(found)), kinds), "the kinds must be %q", kinds)
}

func TestPyroscopeGo(t *testing.T) {
	parallel(t)
	c := start(t, "0s", "    compression: zstd")
	r := record(t, c)
	runClient(t, "pyroscope-go", r.address())
	c.stop(t)
	records := readAll(t, c.files)
	sent := r.profiles(t, "/ingest", http.StatusOK)
	requireAllArrived(t, sent, records)
	requireWork(t, records, "block", "cpu", "goroutine", "heap", "mutex")
	for _, e := range slices.Concat(records...) {
		resource := attributesOf(e.Resource.Attributes)
		if resource["service.instance.id"] == "" || resource["pyroscope.spy"] != "gospy" || resource["process.runtime.name"] != "go" {
			t.Errorf("the resource is %v", resource)
		}
	}
}

func TestDatadogGo(t *testing.T) {
	parallel(t)
	c := start(t, "0s", "    compression: zstd")
	r := record(t, c)
	runClient(t, "dd-trace-go", r.address())
	c.stop(t)
	records := readAll(t, c.files)
	sent := r.profiles(t, "/profiling/v1/input", http.StatusAccepted)
	requireAllArrived(t, sent, records)
	requireWork(t, records, "block", "cpu", "goroutine", "heap", "mutex")
	for _, e := range slices.Concat(records...) {
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
			var sent []sentProfile
			var all []*pushv1.RawProfileSeries
			for kind, data := range own {
				parsed, err := profile.ParseData(data)
				require.NoError(t, err)
				sent = append(sent, sentProfile{0, kind, parsed})
				all = append(all, &pushv1.RawProfileSeries{
					Labels:  []*typesv1.LabelPair{{Name: "__name__", Value: kind}, {Name: "service_name", Value: clientService}},
					Samples: []*pushv1.RawSample{{RawProfile: data, ID: "734FD599-6865-419E-9475-932762D8F469"}},
				})
			}
			require.NoError(t, push(all...))

			bad := &pushv1.RawProfileSeries{Samples: []*pushv1.RawSample{{RawProfile: []byte("hello")}}}
			if err := push(bad); connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "series[0].samples[0]") {
				t.Errorf("a text was answered with %v", err)
			}
			bomb := &pushv1.RawProfileSeries{Samples: []*pushv1.RawSample{{RawProfile: profiletest.Gzip(t, make([]byte, maxDecompressed+1))}}}
			if err := push(bomb); connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), "limit") {
				t.Errorf("a bomb was answered with %v", err)
			}
			grpc := pushv1connect.NewPusherServiceClient(http.DefaultClient, c.url, connect.WithGRPC())
			if _, err := grpc.Push(t.Context(), connect.NewRequest(&pushv1.PushRequest{})); err == nil {
				t.Error("gRPC was accepted")
			}
			c.stop(t)
			requireAllArrived(t, sent, readAll(t, c.files))
		})
	}
}
