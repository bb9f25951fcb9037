// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filestorageextension

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// copying is a client that calls copied after each batch, as if the process was killed then.
type copying struct {
	storage.Client
	copied func()
}

func (c *copying) Batch(ctx context.Context, operations ...*storage.Operation) error {
	defer c.copied()
	return c.Client.Batch(ctx, operations...)
}

// copyingStorage gives clients over copying ones.
type copyingStorage struct {
	*tested
	copied func()
}

func (s copyingStorage) GetClient(ctx context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	c, err := s.tested.GetClient(ctx, kind, id, name)
	if err == nil {
		c.(*client).Client = &copying{c.(*client).Client, s.copied}
	}
	return c, err
}

// TestKilledQueue_E14: whenever a process is killed, also while it starts, the next one sends all that
// was acknowledged.
func TestKilledQueue_E14(t *testing.T) {
	const items = 6
	directory, copies := t.TempDir(), t.TempDir()
	kills := 0
	e := start(t, directory)
	g := &gateway{away: true, got: map[int64]int{}}
	var accepted atomic.Int64
	type state struct {
		accepted int
		got      map[int64]int
	}
	var states []state
	copied := func() {
		path := filepath.Join(directory, "exporter_gateway__profiles")
		file, err := os.ReadFile(path)
		require.NoError(t, err)
		to := filepath.Join(copies, fmt.Sprint(kills))
		require.NoError(t, os.Mkdir(to, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(to, filepath.Base(path)), file, 0o600))
		kills++
		g.mu.Lock()
		defer g.mu.Unlock()
		states = append(states, state{int(accepted.Load()), maps.Clone(g.got)})
	}
	for range 2 {
		x, _ := startQueue(t, copyingStorage{e, copied}, g)
		for range items {
			require.NoError(t, x.ConsumeProfiles(t.Context(), payload(int(accepted.Load()), 100)))
			accepted.Add(1)
		}
		require.NoError(t, x.Shutdown(t.Context())) // while two items are being sent
	}
	x, _ := startQueue(t, copyingStorage{e, copied}, g)
	g.set(false)
	require.Eventually(t, func() bool { return g.count() == int(accepted.Load()) }, time.Minute, time.Millisecond)
	require.NoError(t, x.Shutdown(t.Context()))

	acknowledged, received := 0, 0
	for i, at := range states {
		again := &gateway{got: at.got}
		x, _ := startQueue(t, start(t, filepath.Join(copies, fmt.Sprint(i))), again)
		require.Eventually(t, func() bool { return again.count() >= at.accepted }, time.Minute, time.Millisecond, "killed after batch %d", i)
		require.NoError(t, x.Shutdown(t.Context()))
		acknowledged, received = acknowledged+at.accepted, received+min(again.count(), at.accepted)
	}
	profiletest.Account(t, fmt.Sprintf("%d SIGKILL", kills), acknowledged, received, 0)
}
