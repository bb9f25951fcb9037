// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package filestorageextension

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sys/unix"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// mountTmpfs mounts one of the given size, and skips the test where that is not allowed.
func mountTmpfs(t *testing.T, size int) string {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+strconv.Itoa(size)); err != nil {
		t.Skipf("not run: tmpfs cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(dir, 0)) })
	return dir
}

type host struct {
	component.Host
	extensions map[component.ID]component.Component
}

func (h host) GetExtensions() map[component.ID]component.Component { return h.extensions }

// gateway is what the queue sends to.
type gateway struct {
	mu   sync.Mutex
	away bool
	got  map[int64]int
}

func (g *gateway) consume(_ context.Context, pd pprofile.Profiles) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.away {
		return errors.New("away")
	}
	if pd.ResourceProfiles().Len() == 0 {
		return nil // the queue sends an empty payload for one that it could not store
	}
	number, _ := pd.ResourceProfiles().At(0).Resource().Attributes().Get("number")
	g.got[number.Int()]++
	return nil
}

func (g *gateway) set(away bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.away = away
}

func (g *gateway) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.got)
}

// startQueue starts an exporter with the Collector's own queue.
func startQueue(t *testing.T, e component.Component, g *gateway) (xexporter.Profiles, *observer.ObservedLogs) {
	id := component.MustNewID("file_storage")
	config := exporterhelper.NewDefaultQueueConfig()
	config.Batch = configoptional.None[exporterhelper.BatchConfig]()
	config.StorageID, config.NumConsumers = &id, 2
	retry := configretry.NewDefaultBackOffConfig()
	retry.InitialInterval, retry.MaxInterval, retry.MaxElapsedTime = time.Millisecond, 10*time.Millisecond, 0
	set := exportertest.NewNopSettings(component.MustNewType("gateway"))
	set.ID = component.NewID(component.MustNewType("gateway"))
	core, logs := observer.New(zap.WarnLevel)
	set.Logger = zap.New(core)
	x, err := xexporterhelper.NewProfiles(t.Context(), set, struct{}{}, g.consume,
		exporterhelper.WithQueue(configoptional.Some(config)), exporterhelper.WithRetry(retry))
	require.NoError(t, err)
	require.NoError(t, x.Start(t.Context(), host{componenttest.NewNopHost(), map[component.ID]component.Component{id: e}}))
	return x, logs
}

// payload gives profiles with a number, and with bytes that fill a disk.
func payload(number, size int) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("")
	attributes := pd.ResourceProfiles().AppendEmpty().Resource().Attributes()
	attributes.PutInt("number", int64(number))
	attributes.PutEmptyBytes("bytes").FromRaw(make([]byte, size))
	return pd
}

// TestQueueOnFullDisk_E14: a queue on a full disk sends all that it has acknowledged, though it cannot
// write its bookkeeping, and leaves nothing behind.
func TestQueueOnFullDisk_E14(t *testing.T) {
	cycles, acknowledged, received := profiletest.Rounds(t, 3, 50), 0, 0
	for _, disk := range []int{256 << 10, 1 << 20} {
		directory := mountTmpfs(t, disk)
		e := start(t, directory)
		for cycle := range cycles {
			g := &gateway{away: true, got: map[int64]int{}}
			x, _ := startQueue(t, e, g)
			accepted := 0
			for ; ; accepted++ {
				if err := x.ConsumeProfiles(t.Context(), payload(accepted, disk/80*(1+cycle%3))); err != nil {
					require.ErrorIs(t, err, syscall.ENOSPC)
					break
				}
			}
			require.Greater(t, accepted, 3)
			ballast := filepath.Join(directory, "ballast") // takes the rest
			file, err := os.Create(ballast)
			require.NoError(t, err)
			for _, err = file.Write(make([]byte, 4096)); err == nil; _, err = file.Write(make([]byte, 4096)) {
			}
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.NoError(t, file.Close())
			before := e.counted(t)["failed_operations write"]

			g.set(false)
			require.Eventually(t, func() bool { return g.count() >= accepted }, time.Minute, time.Millisecond)
			require.NoError(t, os.Remove(ballast))
			require.NoError(t, x.Shutdown(t.Context()))
			t.Logf("disk %d, %d accepted, %d failed writes", disk, accepted, e.counted(t)["failed_operations write"]-before)
			for number := range accepted {
				require.Equal(t, 1, g.got[int64(number)])
			}
			require.Len(t, g.got, accepted)
			acknowledged, received = acknowledged+accepted, received+g.count()
			require.Empty(t, items(t, e))
		}
	}
	profiletest.Account(t, fmt.Sprintf("%d full disks", 2*cycles), acknowledged, received, 0)
}

// items gives the keys of the items in the file of the queue.
func items(t *testing.T, e *tested) (keys []string) {
	c, err := e.GetClient(t.Context(), component.KindExporter, component.MustNewID("gateway"), "profiles")
	require.NoError(t, err)
	require.NoError(t, c.(storage.Walker).Walk(t.Context(), func(key string, _ []byte) ([]*storage.Operation, error) {
		if _, err := strconv.Atoi(key); err == nil {
			keys = append(keys, key)
		}
		return nil, nil
	}))
	require.NoError(t, c.Close(t.Context()))
	return keys
}
