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

func TestFilesFromBeforeProtobuf(t *testing.T) {
	directory, modified := t.TempDir(), time.Now().Add(-time.Hour)
	writeFile(t, filepath.Join(directory, "a.prof"), []byte(legacyHeap), modified)
	writeFile(t, filepath.Join(directory, "b.prof"), profiletest.Gzip(t, []byte(legacyHeap)), modified)
	next := newSink(t)
	newTestReceiver(t, "file: {include: ['"+directory+"/*.prof']}", next).files.Poll(t.Context())
	require.Len(t, next.AllProfiles(), 2)
	want, err := profile.ParseData([]byte(legacyHeap))
	require.NoError(t, err)
	want.TimeNanos = modified.UnixNano()
	for _, pd := range next.AllProfiles() {
		assertHolds(t, want, pd)
	}
}

func TestServerRejectsProfilesFromBeforeProtobuf(t *testing.T) {
	b := startTestReceiver(t, serverYAML, consumertest.NewNop())
	got := b.push("", []byte(legacyHeap))
	assert.Equal(t, http.StatusBadRequest, got.status)
	assert.Contains(t, got.body, "convert it with `otelprof convert")
}
