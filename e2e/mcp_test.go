// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"os/exec"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// withToken adds a token to requests.
type withToken string

func (token withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(r)
}

// askTop asks for the functions of the CPU profiles of the week.
func askTop(t *testing.T, transport mcp.Transport) (answer string) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), transport, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, session.Close()) }()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "top", Arguments: map[string]any{"type": "cpu", "from": "-7d", "to": "2199-01-01T00:00:00Z"}})
	require.NoError(t, err)
	content, ok := result.Content[0].(*mcp.TextContent)
	require.True(t, ok)
	require.False(t, result.IsError, content.Text)
	return content.Text
}

// TestAssistantsAskTheBuiltPrograms asks the extension, which wants a token, and otelprof.
func TestAssistantsAskTheBuiltPrograms(t *testing.T) {
	parallel(t)
	dir := t.TempDir()
	all := env{"DATA_DIR": dir, "TOKEN_FILE": profiletest.WriteFile(t, "token", []byte("s3cret\n")), "WINDOW": "200ms"}
	for _, listen := range []string{"PPROF_LISTEN", "OTLP_GRPC_LISTEN", "OTLP_HTTP_LISTEN", "VIEW_LISTEN"} {
		all[listen] = freeAddress(t)
	}
	m := runConfig(t, program(t), "auth.yaml", all, append(slices.Clone(quick["auth.yaml"]), "--set=extensions.profiles_view.mcp.enabled=true")...)
	got, err := ask(http.MethodPost, "http://"+all["PPROF_LISTEN"]+"/v1/pprof?service.name=checkout", numbered(t, 7), "Authorization", "Bearer s3cret")
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, got.status)
	m.awaitSums(t, map[string]int64{"checkout cpu": 7})

	address := "http://" + all["VIEW_LISTEN"] + "/mcp"
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
	_, err = client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: address, MaxRetries: -1}, nil)
	require.Error(t, err, "without a token")
	byPage := askTop(t, &mcp.StreamableClientTransport{
		Endpoint: address, HTTPClient: &http.Client{Transport: withToken("s3cret")}, DisableStandaloneSSE: true, MaxRetries: -1,
	})
	m.stop(t)
	byCommand := askTop(t, &mcp.CommandTransport{Command: exec.Command(otelprofProgram(t), "mcp", dir)})
	for _, answer := range []string{byPage, byCommand} {
		assert.Contains(t, answer, `"samples":`)
		assert.Contains(t, answer, `"functions":[{`)
	}
}
