// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// profilingLogs is a request of a service with profiles as pprof and as text, of 10 ms of wall
// time each, one record that cannot be read, and one that is another log.
func profilingLogs(t *testing.T, service string) plogotlp.ExportRequest {
	t.Helper()
	function := &profile.Function{ID: 1, Name: "App.main", Filename: "App.java"}
	location := &profile.Location{ID: 1, Line: []profile.Line{{Function: function, Line: -1}}}
	now := time.Now()
	cpu := &profile.Profile{Function: []*profile.Function{function}, Location: []*profile.Location{location}}
	for i := range 3 {
		cpu.Sample = append(cpu.Sample, &profile.Sample{
			Location: cpu.Location,
			Label:    map[string][]string{"thread.state": {"RUNNABLE"}, "trace_id": {"0102030405060708090a0b0c0d0e0f10"}, "span_id": {"0102030405060708"}},
			NumLabel: map[string][]int64{"source.event.period": {10}, "source.event.time": {now.UnixMilli() + int64(i)}},
		})
	}
	message := profiletest.Gzip(t, profiletest.Pprof(t, cpu))
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", service)
	scope := rl.ScopeLogs().AppendEmpty()
	scope.Scope().SetName("otel.profiling")
	for _, body := range []string{base64.StdEncoding.EncodeToString(message), "not base64"} {
		record := scope.LogRecords().AppendEmpty()
		record.Body().SetStr(body)
		record.Attributes().PutStr("com.splunk.sourcetype", "otel.profiling")
		record.Attributes().PutStr("profiling.data.format", "pprof-gzip-base64")
		record.Attributes().PutStr("profiling.data.type", "cpu")
	}
	stack := scope.LogRecords().AppendEmpty()
	stack.SetTimestamp(pcommon.NewTimestampFromTime(now))
	stack.Body().SetStr("\"main\" #1 prio=5\n  java.lang.Thread.State: RUNNABLE\n\tat App.main(App.java:7)\n")
	stack.Attributes().PutInt("source.event.period", 10)
	rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("GET /")
	return plogotlp.NewExportRequestFromLogs(ld)
}

// TestSplunkLogsBecomeProfiles_J5 sends log records over gRPC and HTTP to the shipped configuration.
func TestSplunkLogsBecomeProfiles_J5(t *testing.T) {
	parallel(t)
	grpcAddress, httpAddress := freeAddress(t), freeAddress(t)
	m := runConfig(t, program(t), "splunk.yaml", env{
		"DATA_DIR": t.TempDir(), "OTLP_GRPC_LISTEN": grpcAddress, "OTLP_HTTP_LISTEN": httpAddress, "WINDOW": "200ms",
	}, quick["splunk.yaml"]...)

	connection, err := grpc.NewClient(grpcAddress, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := plogotlp.NewGRPCClient(connection).Export(ctx, profilingLogs(t, "over-grpc")); err != nil {
		t.Fatal(err)
	}
	body, err := profilingLogs(t, "over-http").MarshalProto()
	require.NoError(t, err)
	response, err := http.Post("http://"+httpAddress+"/v1/logs", "application/x-protobuf", bytes.NewReader(body))
	require.NoError(t, err)
	_ = response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)

	m.awaitSums(t, map[string]int64{
		"over-grpc samples": 4, "over-grpc wall": 40e6, "over-http samples": 4, "over-http wall": 40e6,
	})
	for outcome, records := range map[string]int{"accepted": 4, "malformed": 2, "not_profiling": 2} {
		assert.Equal(t, records, m.metric(t, "otelcol_connector_splunk_profiling_records", `outcome="`+outcome+`"`), "%s records", outcome)
	}
}
