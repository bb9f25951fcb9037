// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/profilesfilereceiver/internal/metadatatest"
)

const patience = time.Minute

// number is the attribute by which a test knows a payload again.
const number = "test.number"

func payload(t *testing.T, n int) pprofile.Profiles {
	t.Helper()
	pd := profiletest.Small(t)
	pd.ResourceProfiles().At(0).Resource().Attributes().PutInt(number, int64(n))
	return pd
}

func numberOf(pd pprofile.Profiles) int {
	if pd.ResourceProfiles().Len() == 0 {
		return 0
	}
	n, _ := pd.ResourceProfiles().At(0).Resource().Attributes().Get(number)
	return int(n.Int())
}

func message(t *testing.T, n int) []byte {
	t.Helper()
	return profiletest.Proto(t, payload(t, n))
}

// writeRecords writes one file of a service as the exporter does, and returns its path. It is closed by the end of the process, so that its records
// are not joined.
func writeRecords(t *testing.T, dir string, format segment.Format, service string, numbers ...int) (path string) {
	t.Helper()
	w, err := store.OpenWriter(store.Options{
		Directory: dir, Format: format, MaxOpen: 1,
		FileClosed: func(f store.ClosedFile) { path = f.Path },
		Failed:     func(err error) { require.NoError(t, err) },
	})
	require.NoError(t, err)
	for _, n := range numbers {
		data := message(t, n)
		if format == segment.JSON {
			data = profiletest.JSON(t, payload(t, n))
		}
		require.NoError(t, w.Append(store.Record{Data: data, Group: []string{layout.GroupDir("service.name", layout.GroupName(service))}}))
	}
	require.NoError(t, w.Close())
	require.NotEmpty(t, path)
	return path
}

// write writes a file that another program closed an hour ago.
func write(t *testing.T, path string, content []byte) {
	t.Helper()
	profiletest.WriteAt(t, path, content, time.Now().Add(-time.Hour))
}

// add adds to a file, as another program did an hour ago.
func add(t *testing.T, path string, content []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.Write(content)
	require.NoError(t, errors.Join(err, f.Close()))
	closed := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path, closed, closed))
}

// testConsumer is a next consumer whose responses a test decides.
type testConsumer struct {
	answer func(ctx context.Context, pd pprofile.Profiles) error // nil accepts

	mu       sync.Mutex
	accepted map[int]int // times, by number
}

func (n *testConsumer) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

func (n *testConsumer) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	which := numberOf(pd)
	if n.answer != nil {
		if err := n.answer(ctx, pd); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.accepted == nil {
		n.accepted = map[int]int{}
	}
	n.accepted[which]++
	return nil
}

func (n *testConsumer) got() map[int]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.accepted)
}

// once is what got returns if each number was accepted once.
func once(numbers ...int) map[int]int {
	all := map[int]int{}
	for _, n := range numbers {
		all[n] = 1
	}
	return all
}

// testReceiver is a receiver under test with its telemetry and logs.
type testReceiver struct {
	*fileReceiver
	t         *testing.T
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
}

// start starts a receiver with short waits, and shuts it down when the test ends.
func start(t *testing.T, yaml string, n *testConsumer) *testReceiver {
	t.Helper()
	return startOn(t, componenttest.NewNopHost(), yaml, n)
}

func startOn(t *testing.T, host component.Host, yaml string, n *testConsumer) *testReceiver {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, profiletest.LoadConfig(yaml+"\npoll_interval: 10ms\nretry_on_failure: {initial_interval: 1ms, max_interval: 5ms}\n", cfg))
	observed, telemetry, logs := profiletest.Observe(t)
	set := metadatatest.NewSettings(telemetry)
	set.Logger = observed.Logger
	r, err := newReceiver(set, cfg, n)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), host))
	t.Cleanup(func() { assert.NoError(t, r.Shutdown(context.Background())) })
	return &testReceiver{fileReceiver: r, t: t, telemetry: telemetry, logs: logs}
}

// await waits until the consumer has accepted each of these once, and nothing waits any more.
func (r *testReceiver) await(n *testConsumer, numbers ...int) {
	r.t.Helper()
	require.EventuallyWithT(r.t, func(c *assert.CollectT) {
		assert.Equal(c, once(numbers...), n.got())
		assert.Zero(c, r.watcher.Backlog().Files)
	}, patience, time.Millisecond)
}

func (r *testReceiver) awaitLog(message string) observer.LoggedEntry {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.logs.FilterMessage(message).Len() > 0 }, patience, time.Millisecond, message)
	return r.logs.FilterMessage(message).All()[0]
}

// counts returns a metric by the value of outcome.
func (r *testReceiver) counts(name string) map[string]int64 {
	r.t.Helper()
	return profiletest.MetricsBy(r.t, r.telemetry, "otelcol_receiver_profiles_file_"+name, "outcome")[""]
}

// filesIn returns the paths of the files below a directory, but hidden ones.
func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		names = append(names, relative)
		return err
	}))
	return names
}

// numbersIn returns the numbers of the payloads that count in the directory of an exporter.
func numbersIn(t *testing.T, dir string) (numbers []int) {
	t.Helper()
	s, err := store.Open(dir, store.ReadOptions{MaxRecord: 1 << 30, MaxDecoded: 1 << 30, Cache: 1 << 20})
	require.NoError(t, err)
	defer s.Close()
	segments, err := s.Live(t.Context(), time.Time{}, time.Now().AddDate(100, 0, 0), nil)
	require.NoError(t, err)
	for _, file := range segments {
		index, err := file.Index(t.Context())
		require.NoError(t, err)
		for data, err := range file.Records(t.Context(), index, index.Records) {
			require.NoError(t, err)
			pd, err := store.Decode(file.Format, data, 1<<30)
			require.NoError(t, err)
			numbers = append(numbers, numberOf(pd))
		}
	}
	slices.Sort(numbers)
	return numbers
}
