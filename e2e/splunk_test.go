// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
)

// TestSplunkLogsBecomeProfiles sends a stack of 10 ms as Splunk's agents do, beside a log record that is none.
func TestSplunkLogsBecomeProfiles(t *testing.T) {
	parallel(t)
	address := freeAddress(t)
	m := runConfig(t, program(t), "splunk.yaml", env{
		"DATA_DIR": t.TempDir(), "OTLP_GRPC_LISTEN": freeAddress(t), "OTLP_HTTP_LISTEN": address, "WINDOW": "200ms",
	}, quick["splunk.yaml"]...)
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "checkout")
	scope := rl.ScopeLogs().AppendEmpty()
	scope.Scope().SetName("otel.profiling")
	stack := scope.LogRecords().AppendEmpty()
	stack.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	stack.Body().SetStr("\"main\" #1 prio=5\n  java.lang.Thread.State: RUNNABLE\n\tat App.main(App.java:7)\n")
	stack.Attributes().PutInt("source.event.period", 10)
	rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("GET /")
	body, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	require.NoError(t, err)
	status, said, err := postOTLP("http://"+address+"/v1/logs", body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status, said)
	m.awaitSums(t, map[string]int64{"checkout samples": 1, "checkout wall": 10e6})
	require.Equal(t, 1, m.metric(t, "otelcol_connector_splunk_profiling_records", `outcome="not_profiling"`))
}
