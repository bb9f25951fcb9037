// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestReplayEndsWhenAllIsSent replays the files of one gateway to another, which is away at first.
func TestReplayEndsWhenAllIsSent(t *testing.T) {
	parallel(t)
	http := freeAddress(t)
	from := gateway(t, freeAddress(t), env{"OTLP_HTTP_LISTEN": http})
	from.url = "http://" + http
	want := map[string]int64{}
	for _, service := range []string{"checkout", "cart", "search"} {
		from.sendOTLP(t, numbered(t, int64(len(service))), service, "1")
		want[service+" cpu"] = int64(len(service))
	}
	from.awaitSums(t, want)
	from.stop(t)

	listen := freeAddress(t)
	replay := launch(t, program(t), []string{"FILES_DIR=" + from.files, "GATEWAY_ENDPOINT=" + listen},
		slices.Concat(quick["replay.yaml"], []string{"--config", filepath.Join(configs, "replay.yaml")})...)
	to := gateway(t, listen, nil)
	select {
	case err := <-replay.exited:
		require.NoError(t, err, "%s", replay.logs)
	case <-time.After(patience):
		t.Fatalf("replay does not end\n%s", replay.logs)
	}
	if !strings.Contains(replay.logs.String(), `Read all files`) || !strings.Contains(replay.logs.String(), `"records": 3`) {
		t.Errorf("the log does not say that 3 records were sent:\n%s", replay.logs)
	}
	to.stop(t)
	to.requireSums(t, want)
	from.requireSums(t, want)
}
