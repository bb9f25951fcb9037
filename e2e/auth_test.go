// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"maps"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestTokensAreRequiredAndSent_D7 runs the shipped configuration as a gateway and as its client.
func TestTokensAreRequiredAndSent_D7(t *testing.T) {
	parallel(t)
	token := profiletest.WriteFile(t, "token", []byte("s3cret\n"))
	run := func(variables env) (*member, env) {
		all := env{"DATA_DIR": t.TempDir(), "TOKEN_FILE": token, "WINDOW": "200ms"}
		for _, listen := range []string{"PPROF_LISTEN", "OTLP_GRPC_LISTEN", "OTLP_HTTP_LISTEN", "VIEW_LISTEN"} {
			all[listen] = freeAddress(t)
		}
		maps.Copy(all, variables)
		return runConfig(t, program(t), "auth.yaml", all, quick["auth.yaml"]...), all
	}
	g, listens := run(nil)
	client, of := run(env{"EXPORTER": "otlp_http", "GATEWAY_ENDPOINT": "http://" + listens["OTLP_HTTP_LISTEN"]})

	pprof := numbered(t, 7)
	send := func(method, url, contentType, token string, body []byte) int {
		headers := []string{"Content-Type", contentType}
		if token != "" {
			headers = append(headers, "Authorization", "Bearer "+token)
		}
		got, err := ask(method, url, body, headers...)
		require.NoError(t, err)
		return got.status
	}
	push := "http://" + of["PPROF_LISTEN"] + "/v1/pprof?service.name=checkout"
	for _, wrong := range []string{"", "other"} {
		assert.Equal(t, http.StatusUnauthorized, send(http.MethodPost, push, "application/octet-stream", wrong, pprof))
		assert.Equal(t, http.StatusUnauthorized, send(http.MethodPost, "http://"+listens["OTLP_HTTP_LISTEN"]+"/v1development/profiles", "application/json", wrong, []byte("{}")))
		assert.Equal(t, http.StatusUnauthorized, send(http.MethodGet, "http://"+listens["VIEW_LISTEN"]+"/", "", wrong, nil))
	}
	profiletest.Injected(t, "7 requests without the token")
	connection, err := grpc.NewClient(listens["OTLP_GRPC_LISTEN"], grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	_, err = pprofileotlp.NewGRPCClient(connection).Export(t.Context(), pprofileotlp.NewExportRequestFromProfiles(pprofile.NewProfiles()))
	assert.Equal(t, codes.Unauthenticated, status.Code(err))

	assert.Equal(t, http.StatusNoContent, send(http.MethodPost, push, "application/octet-stream", "s3cret", pprof))
	assert.Equal(t, http.StatusOK, send(http.MethodGet, "http://"+listens["VIEW_LISTEN"]+"/", "", "s3cret", nil))
	client.stop(t)
	g.awaitSums(t, map[string]int64{"checkout cpu": 7})
}
