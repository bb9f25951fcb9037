// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

const legacyHeap = "heap profile: 1: 2048 [3: 8192] @ heap_v2/524288\n 1: 2048 [3: 8192] @ 0x401000 0x402000\n"

func requireFileHolds(t *testing.T, content []byte) {
	t.Helper()
	directory := t.TempDir()
	writeFile(t, filepath.Join(directory, "a.prof"), content, time.Now().Add(-time.Hour))
	next := newSink(t)
	startTestReceiver(t, "file: {include: ['"+directory+"/*.prof'], poll_interval: 10ms}", next)
	require.Eventually(t, func() bool { return len(next.AllProfiles()) == 1 }, time.Minute, 10*time.Millisecond)
	want, err := profile.ParseData(content)
	require.NoError(t, err)
	assertHolds(t, want, next.only())
}

func TestFilesFromBeforeProtobuf(t *testing.T) {
	requireFileHolds(t, []byte(legacyHeap))
	requireFileHolds(t, profiletest.Gzip(t, []byte(legacyHeap)))
}

func TestServerRejectsProfilesFromBeforeProtobuf(t *testing.T) {
	b := startTestReceiver(t, serverYAML, consumertest.NewNop())
	got := b.push("", []byte(legacyHeap))
	assert.Equal(t, http.StatusBadRequest, got.status)
	assert.Contains(t, got.body, "convert it with `otelprof convert")
}
