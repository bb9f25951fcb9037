// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

func TestFailedDecompressionReleasesItsBytes_R2(t *testing.T) {
	s := newTestServer(t, nil)
	s.ingester = ingest.New(ingest.Settings{
		Logger:      zap.NewNop(),
		Unmarshaler: &pproftranslator.Unmarshaler{Limits: pproftranslator.Limits{DecompressedSize: 64 << 20}},
		Metrics:     ingest.Metrics{PayloadSize: noop.Int64Counter{}, TranslationDuration: noop.Float64Histogram{}, Attributes: metric.WithAttributes()},
	}, consumertest.NewNop())
	r := s.newRequest(httptest.NewRequest(http.MethodPost, "/", nil))
	bomb, bad := Profile{Name: "bomb"}, Profile{Name: "bad"}
	bomb.Resource, bad.Resource = pcommon.NewMap(), pcommon.NewMap()
	bomb.Data = profiletest.Gzip(t, make([]byte, 8<<20))
	bad.Data = profiletest.Gzip(t, []byte("some text that is cut off"))[:20]
	require.NoError(t, r.reservation.Work(t.Context(), 0, func() error {
		all, err := s.prepare(r, 0, []Profile{bomb, bad})
		assert.Empty(t, all.names)
		assert.Len(t, all.failures, 2)
		return err
	}))
	assert.Zero(t, s.settings.InFlight.InUse())
	profiletest.Injected(t, "1 bombs, 1 torn profiles")
}
