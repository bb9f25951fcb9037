// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofexporter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pprofexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/pprofservertest"
)

// TestABackendThatIsAwayIsOneWarning: with its address, without advice against the configuration, and as the status of the component.
func TestABackendThatIsAwayIsOneWarning(t *testing.T) {
	for _, protocol := range protocols {
		var away atomic.Bool
		away.Store(true)
		s := pprofservertest.Start(t, func(pprofservertest.Received) pprofservertest.Answer {
			switch {
			case !away.Load():
				return pprofservertest.Answer{}
			case protocol == protocolParca:
				return pprofservertest.Answer{GRPC: status.New(codes.Unavailable, "away")}
			}
			return pprofservertest.Answer{Status: http.StatusServiceUnavailable}
		})
		config := createDefaultConfig().(*Config)
		require.NoError(t, profiletest.LoadConfig("endpoint: '"+s.URL+"/?secret=s3cret'\nprotocol: "+protocol+withoutQueue, config))
		set := exportertest.NewNopSettings(metadata.Type)
		logs := profiletest.LogFromInfo(&set.TelemetrySettings)
		e, err := NewFactory().(xexporter.Factory).CreateProfiles(t.Context(), set, config)
		require.NoError(t, err)
		host := profiletest.NewStatusHost()
		require.NoError(t, e.Start(t.Context(), host))
		for range 20 {
			require.Error(t, e.ConsumeProfiles(t.Context(), services(t, "a", "b")))
		}
		require.Equal(t, 1, logs.Len(), protocol)
		warning := logs.All()[0]
		assert.Equal(t, "Backend does not take profiles", warning.Message)
		assert.Equal(t, s.URL, strings.TrimSuffix(warning.ContextMap()["endpoint"].(string), "/"))
		assert.NotContains(t, fmt.Sprint(warning.ContextMap()), "s3cret")
		away.Store(false)
		require.NoError(t, e.ConsumeProfiles(t.Context(), services(t, "a", "b")))
		require.Equal(t, 2, logs.Len(), protocol)
		assert.Equal(t, "Sending profiles again", logs.All()[1].Message)
		assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusOK}, host.Statuses())
		require.NoError(t, e.Shutdown(t.Context()))
	}
}

// flaky is a client that panics for some services, a number of times.
type flaky struct {
	client
	panics map[string]int
	sent   []string
}

func (f *flaky) send(ctx context.Context, s *series) *failure {
	if f.panics[s.service]--; f.panics[s.service] >= 0 {
		panic("out of the blue")
	}
	f.sent = append(f.sent, s.service)
	return f.client.send(ctx, s)
}

// TestPanicsAreRetried_A11: a panic ends neither the process nor the other series, and no profile is sent twice.
func TestPanicsAreRetried_A11(t *testing.T) {
	s := pprofservertest.Start(t, nil)
	config := createDefaultConfig().(*Config)
	require.NoError(t, profiletest.LoadConfig("endpoint: "+s.URL, config))
	set := exportertest.NewNopSettings(metadata.Type)
	logs := profiletest.LogFromInfo(&set.TelemetrySettings)
	e, err := newPprofExporter(config, set)
	require.NoError(t, err)
	require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
	broken := &flaky{client: e.client, panics: map[string]int{"b": 2}}
	e.client = broken
	payload, attempts := services(t, "a", "b", "c"), 0
	for err = e.consume(t.Context(), payload); err != nil; err = e.consume(t.Context(), payload) {
		assert.False(t, consumererror.IsPermanent(err))
		rest, ok := errors.AsType[xconsumererror.Profiles](err)
		require.True(t, ok)
		assert.Equal(t, []string{"b"}, servicesOf(rest.Data()))
		payload = rest.Data()
		attempts++
	}
	assert.Equal(t, 2, attempts)
	assert.Equal(t, []string{"a", "c", "b"}, broken.sent)
	panicked := logs.FilterMessage("Panic while sending profiles; will retry").All()
	require.Len(t, panicked, 1, "one a minute")
	assert.Equal(t, 1, logs.Len(), "the backend is not at fault")
	assert.Contains(t, panicked[0].ContextMap()["stack"], "flaky).send")
	require.NoError(t, e.shutdown(t.Context()))
}
