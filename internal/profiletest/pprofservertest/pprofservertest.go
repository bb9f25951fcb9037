// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pprofservertest is for tests only: a server of each protocol by which servers take pprof.
package pprofservertest

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// Received is what a server got in one request.
type Received struct {
	Labels map[string]string // of the one series
	Query  url.Values        // of protocol http
	Header http.Header
	Pprof  *profile.Profile
}

// Service returns the label of the service.
func (r Received) Service() string { return r.Labels["service_name"] }

// Types returns the type IDs that Pyroscope and Parca make of a pprof.
func (r Received) Types() (ids []string) {
	for _, t := range r.Pprof.SampleType {
		ids = append(ids, strings.Join([]string{r.Labels["__name__"], t.Type, t.Unit, r.Pprof.PeriodType.Type, r.Pprof.PeriodType.Unit}, ":"))
	}
	return ids
}

// Answer is the response of a server: a status of HTTP, 200 if it is 0, with a header and a message, or one of gRPC.
type Answer struct {
	Status     int
	RetryAfter string
	Message    string
	GRPC       *status.Status
}

// Server is one of each protocol, written to its definition: a request that breaks it fails the test. It answers each
// request with what answers returns, and keeps those that it accepts.
type Server struct {
	tb      testing.TB
	URL     string
	answers func(Received) Answer

	mu       sync.Mutex
	accepted []Received
	requests int
}

// Start listens until the test ends. Without answers, the server accepts everything.
func Start(tb testing.TB, answers func(Received) Answer) *Server {
	tb.Helper()
	s := &Server{tb: tb, answers: answers}
	listening := httptest.NewUnstartedServer(s.handler())
	listening.Config.Protocols = &http.Protocols{}
	listening.Config.Protocols.SetHTTP1(true)
	listening.Config.Protocols.SetUnencryptedHTTP2(true) // gRPC without TLS
	listening.Start()
	tb.Cleanup(listening.Close)
	s.URL = listening.URL
	return s
}

// StartTLS is Start with TLS and the file of the certificate that clients have to trust.
func StartTLS(tb testing.TB) (s *Server, authority string) {
	tb.Helper()
	s = &Server{tb: tb}
	listening := httptest.NewUnstartedServer(s.handler())
	listening.EnableHTTP2 = true
	listening.StartTLS()
	tb.Cleanup(listening.Close)
	s.URL = listening.URL
	return s, profiletest.WriteFile(tb, "ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: listening.Certificate().Raw}))
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw", grpc.NewServer(grpc.UnknownServiceHandler(s.writeRaw)))
	mux.HandleFunc("POST /push.v1.PusherService/Push", s.push)
	mux.HandleFunc("POST /v1/pprof", s.post)
	mux.HandleFunc("POST /ingest", s.post)
	return mux
}

// push is a unary Connect call with a PushRequest.
func (s *Server) push(w http.ResponseWriter, r *http.Request) {
	assert.Equal(s.tb, "application/proto", r.Header.Get("Content-Type"))
	assert.Equal(s.tb, "1", r.Header.Get("Connect-Protocol-Version"))
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client closed the connection
	}
	series := profiletest.Fields(s.only(profiletest.Fields(body), 1))
	sample := profiletest.Fields(series[2][0])
	assert.Len(s.tb, series, 2)
	assert.Len(s.tb, sample[2][0], 36, "UUID")
	s.respond(w, Received{Labels: labelsOf(series[1]), Header: r.Header}, sample[1][0])
}

// post is a request with a pprof as its body.
func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	if body, err := io.ReadAll(r.Body); err == nil {
		s.respond(w, Received{Query: r.URL.Query(), Header: r.Header}, body)
	}
}

func (s *Server) respond(w http.ResponseWriter, got Received, raw []byte) {
	a := s.take(got, raw)
	w.Header().Set("Retry-After", a.RetryAfter)
	w.Header().Set("Location", "/elsewhere")
	w.WriteHeader(max(a.Status, http.StatusOK))
	_, _ = io.WriteString(w, a.Message)
}

// writeRaw is a gRPC call with a WriteRawRequest.
func (s *Server) writeRaw(_ any, stream grpc.ServerStream) error {
	var request emptypb.Empty // all of its fields are unknown
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	series := profiletest.Fields(s.only(profiletest.Fields(request.ProtoReflect().GetUnknown()), 2))
	assert.Len(s.tb, series, 2)
	got := Received{Labels: labelsOf(profiletest.Fields(series[1][0])[1]), Header: http.Header{}}
	incoming, _ := metadata.FromIncomingContext(stream.Context())
	for key, values := range incoming {
		got.Header[http.CanonicalHeaderKey(key)] = values
	}
	if a := s.take(got, s.only(profiletest.Fields(series[2][0]), 1)); a.GRPC.Code() != codes.OK {
		return a.GRPC.Err()
	}
	return stream.SendMsg(&emptypb.Empty{})
}

// only returns the one field of a message.
func (s *Server) only(fields profiletest.Message, number int) []byte {
	assert.Len(s.tb, fields, 1)
	values := fields[number]
	assert.Len(s.tb, values, 1)
	return values[0]
}

func labelsOf(pairs [][]byte) map[string]string {
	labels := map[string]string{}
	for _, pair := range pairs {
		fields := profiletest.Fields(pair)
		labels[string(fields[1][0])] = string(fields[2][0])
	}
	return labels
}

// take checks a pprof, and keeps it unless the answer is an error.
func (s *Server) take(got Received, raw []byte) (a Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	assert.Equal(s.tb, []byte{0x1f, 0x8b}, raw[:2], "gzip")
	var err error
	if got.Pprof, err = profile.ParseData(raw); !assert.NoError(s.tb, err) {
		return Answer{Status: http.StatusBadRequest}
	}
	if got.Labels != nil {
		assert.NotEmpty(s.tb, got.Labels["__name__"])
		assert.NotEmpty(s.tb, got.Service())
		last := got.Pprof.SampleType[len(got.Pprof.SampleType)-1]
		assert.True(s.tb, got.Pprof.PeriodType.Type != "" || last.Type == "", "period type")
		assert.NotZero(s.tb, got.Pprof.TimeNanos)
	}
	if s.answers != nil {
		a = s.answers(got)
	}
	if a.Status < 300 && a.GRPC.Code() == codes.OK {
		s.accepted = append(s.accepted, got)
	}
	return a
}

// Took returns what the server accepted, when it was n requests.
func (s *Server) Took(n int) (all []Received) {
	s.tb.Helper()
	require.Eventually(s.tb, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		all = slices.Clone(s.accepted)
		return len(all) >= n
	}, 20*time.Second, 5*time.Millisecond, "%d requests", n)
	require.Len(s.tb, all, n)
	return all
}

// Requests is how many requests the server got.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// TakeAll returns what the server accepted, and forgets it.
func (s *Server) TakeAll() (all []Received) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, s.accepted = s.accepted, nil
	return all
}

// Sums returns the sums of the pprofs in requests, as profiletest.Sums does.
func Sums(all ...Received) map[string]int64 {
	var pprofs []*profile.Profile
	for _, r := range all {
		pprofs = append(pprofs, r.Pprof)
	}
	return profiletest.Sums(pprofs...)
}
