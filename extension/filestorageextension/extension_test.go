// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filestorageextension

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/extension/filestorageextension/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// tested is an extension, what it counts and what it logs.
type tested struct {
	storage.Extension
	directory string
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
}

func start(t testing.TB, directory string, change ...func(cfg *Config)) *tested {
	telemetry := componenttest.NewTelemetry()
	set := extensiontest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	core, logs := observer.New(zapcore.InfoLevel)
	set.Logger = zap.New(core)
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	cfg.Directory, cfg.Timeout = directory, 10*time.Millisecond
	for _, c := range change {
		c(cfg)
	}
	require.NoError(t, cfg.Validate())
	e, err := NewFactory().Create(t.Context(), set, cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		require.NoError(t, e.Shutdown(context.Background()))
		require.NoError(t, telemetry.Shutdown(context.Background()))
	})
	return &tested{e.(storage.Extension), directory, telemetry, logs}
}

// counted gives the counters with their operation.
func (e *tested) counted(t testing.TB) map[string]int64 {
	found := map[string]int64{}
	var all metricdata.ResourceMetrics
	require.NoError(t, e.telemetry.Reader.Collect(context.Background(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
				operation, _ := point.Attributes.Value("operation")
				found[strings.TrimSpace(strings.TrimPrefix(m.Name, "otelcol_extension_file_storage_")+" "+operation.AsString())] += point.Value
			}
		}
	}
	return found
}

var queue = component.MustNewIDWithName("profiles_file", "a b")

const queueFile = "exporter_profiles_file_a~0020b_profiles"

func (e *tested) open(t testing.TB) storage.Client {
	c, err := e.GetClient(t.Context(), component.KindExporter, queue, "profiles")
	require.NoError(t, err)
	return c
}

// fill gives the file of a queue in use: of items of many sizes some are gone.
func fill(t testing.TB, items int) []byte {
	e := start(t, t.TempDir())
	c := e.open(t)
	for i := range items {
		require.NoError(t, c.Set(t.Context(), strconv.Itoa(i), bytes.Repeat([]byte{byte(i)}, (i%7)*(i%11)*200)))
		if i%3 == 0 {
			require.NoError(t, c.Delete(t.Context(), strconv.Itoa(i/2)))
		}
	}
	require.NoError(t, c.Close(t.Context()))
	file, err := os.ReadFile(filepath.Join(e.directory, queueFile))
	require.NoError(t, err)
	return file
}

// use reads and writes all keys.
func use(t testing.TB, e *tested, items int) {
	c := e.open(t)
	for i := range items {
		_, err := c.Get(t.Context(), strconv.Itoa(i))
		require.NoError(t, err)
	}
	for i := range items {
		require.NoError(t, c.Set(t.Context(), strconv.Itoa(i), []byte("new")))
		require.NoError(t, c.Delete(t.Context(), strconv.Itoa(items-i)))
	}
	require.NoError(t, c.Close(t.Context()))
}

func names(t testing.TB, directory string) (all []string) {
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

// TestTruncatedFileIsMovedAside_E14: the Collector starts with an empty file, and says so.
func TestTruncatedFileIsMovedAside_E14(t *testing.T) {
	const items = 60
	file := fill(t, items)
	whole := 0
	for size := 0; size <= len(file); size += 4096 {
		for _, size := range []int{max(0, size-1), size} {
			e := start(t, t.TempDir())
			path := filepath.Join(e.directory, queueFile)
			require.NoError(t, os.WriteFile(path, file[:size], 0o600))
			require.NoError(t, os.WriteFile(path+".note", []byte("not a database"), 0o600))
			c := e.open(t)
			require.NoError(t, c.Close(t.Context()))
			left := names(t, e.directory)
			require.Contains(t, left, queueFile+".note")
			if len(left) == 2 {
				whole++
				use(t, e, items)
				continue
			}
			require.Len(t, left, 3)
			require.Regexp(t, `^`+queueFile+`\.damaged-\d{8}T\d{6}\.\d{3}Z$`, left[1])
			aside, err := os.ReadFile(filepath.Join(e.directory, left[1]))
			require.NoError(t, err)
			require.Equal(t, file[:size], aside)
			require.EqualValues(t, 1, e.counted(t)["damaged_files"])
			lines := e.logs.FilterMessage("Moved damaged storage file aside; starting with an empty one").All()
			require.Len(t, lines, 1)
			require.Equal(t, zapcore.ErrorLevel, lines[0].Level)
			fields := lines[0].ContextMap()
			require.Equal(t, path, fields["path"])
			require.Equal(t, filepath.Join(e.directory, left[1]), fields["moved_to"])
			require.Equal(t, "the profiles in this queue are not sent", fields["consequence"])
		}
	}
	assert.GreaterOrEqual(t, whole, 2, "the empty and the whole file at least")
	profiletest.Injected(t, fmt.Sprintf("%d truncated files", 2*len(file)/4096))
}

// TestFlippedBytes_E14: whatever byte is wrong, the file is moved aside, or can be used.
func TestFlippedBytes_E14(t *testing.T) {
	const items = 60
	file := fill(t, items)
	random := rand.New(rand.NewPCG(profiletest.Seed(t), 0))
	rounds, aside := profiletest.Rounds(t, 400, 20_000), 0
	for range rounds {
		damaged := bytes.Clone(file)
		// Most of a page is values: the header and the table of its elements count. Half of the damage is in
		// headers, so that how many files are moved aside is far above the bound, whatever the seed.
		page, in := random.IntN(len(file)/4096), random.IntN(16)
		switch random.IntN(8) {
		case 0, 1:
			in = random.IntN(4096)
		case 2, 3:
			in = random.IntN(80)
		}
		for range 1 + random.IntN(3) {
			damaged[page*4096+min(in, 4095)] ^= 1 << random.IntN(8)
			in++
		}
		e := start(t, t.TempDir())
		require.NoError(t, os.WriteFile(filepath.Join(e.directory, queueFile), damaged, 0o600))
		use(t, e, items)
		aside += len(names(t, e.directory)) - 1
	}
	assert.Greater(t, aside, rounds/10)
	profiletest.Injected(t, fmt.Sprintf("%d files with wrong bytes, %d moved aside", rounds, aside))
}

// TestNoDatabase_E14: garbage under the name of a client's file is moved aside, too.
func TestNoDatabase_E14(t *testing.T) {
	random := rand.New(rand.NewPCG(profiletest.Seed(t), 0))
	for range profiletest.Rounds(t, 20, 500) {
		garbage := make([]byte, 1+random.IntN(100_000))
		for i := range garbage {
			garbage[i] = byte(random.Uint32())
		}
		e := start(t, t.TempDir())
		require.NoError(t, os.WriteFile(filepath.Join(e.directory, queueFile), garbage, 0o600))
		use(t, e, 10)
		require.Len(t, names(t, e.directory), 2)
	}
	profiletest.Injected(t, "20 files of garbage")
}

// TestErrorsNameTheFile: what is no damage is an error, as with contrib's extension, but with the path.
func TestErrorsNameTheFile(t *testing.T) {
	t.Run("directory", func(t *testing.T) {
		e := start(t, t.TempDir())
		path := filepath.Join(e.directory, queueFile)
		require.NoError(t, os.Mkdir(path, 0o700))
		_, err := e.GetClient(t.Context(), component.KindExporter, queue, "profiles")
		require.ErrorContains(t, err, "cannot open storage "+path)
		assert.EqualValues(t, 1, e.counted(t)["failed_operations open"])
		assert.Equal(t, []string{queueFile}, names(t, e.directory))
	})
	t.Run("locked", func(t *testing.T) {
		e := start(t, t.TempDir())
		path := filepath.Join(e.directory, queueFile)
		c := e.open(t)
		require.NoError(t, c.Set(t.Context(), "k", []byte("v")))
		_, err := e.GetClient(t.Context(), component.KindExporter, queue, "profiles")
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, "timeout")
		value, err := c.Get(t.Context(), "k")
		require.NoError(t, err)
		assert.Equal(t, "v", string(value))
		require.NoError(t, c.Close(t.Context()))
		assert.Equal(t, []string{queueFile}, names(t, e.directory))
	})
	t.Run("locked and damaged", func(t *testing.T) {
		e := start(t, t.TempDir())
		path := filepath.Join(e.directory, queueFile)
		c := e.open(t)
		_, err := os.Stat(path)
		require.NoError(t, err)
		other, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		_, err = other.WriteAt(make([]byte, 4096), 0)
		require.NoError(t, err)
		require.NoError(t, other.Close())
		_, err = e.GetClient(t.Context(), component.KindExporter, queue, "profiles")
		require.ErrorContains(t, err, "timeout")
		require.NoError(t, c.Close(t.Context()))
		assert.Equal(t, []string{queueFile}, names(t, e.directory))
	})
}

// TestNamesAreContribs: a file of contrib's extension is found under all names.
func TestNamesAreContribs(t *testing.T) {
	for _, kind := range []component.Kind{component.KindReceiver, component.KindProcessor, component.KindExporter, component.KindExtension, component.KindConnector} {
		for _, name := range []string{"", "profiles", "ä/b ~c", strings.Repeat("long", 100)} {
			e := start(t, t.TempDir())
			c, err := e.GetClient(t.Context(), kind, queue, name)
			require.NoError(t, err)
			require.NoError(t, c.Set(t.Context(), "k", []byte("v")))
			require.NoError(t, c.Close(t.Context()))
			assert.Equal(t, filepath.Join(e.directory, names(t, e.directory)[0]), e.Extension.(*fileStorage).pathOf(kind, queue, name))
		}
	}
}

// TestCompactionIsChecked: the file is checked before contrib compacts it at start.
func TestCompactionIsChecked(t *testing.T) {
	file := fill(t, 40)
	e := start(t, t.TempDir(), func(cfg *Config) {
		cfg.Compaction.OnStart, cfg.Compaction.Directory = true, cfg.Directory
	})
	require.NoError(t, os.WriteFile(filepath.Join(e.directory, queueFile), file[:len(file)/2], 0o600))
	use(t, e, 40)
	assert.Len(t, names(t, e.directory), 2)
}
