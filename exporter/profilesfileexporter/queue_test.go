// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata/request"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// numbered gives profiles with a resource for each service, and a number in each.
func numbered(number int, services ...string) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("")
	for _, service := range services {
		attributes := pd.ResourceProfiles().AppendEmpty().Resource().Attributes()
		attributes.PutStr("service.name", service)
		attributes.PutInt("number", int64(number))
	}
	return pd
}

// numbersIn gives the numbers of the finished records at and below a directory,
// sorted, by service.
func numbersIn(t testing.TB, dir string) map[string][]int {
	numbers := map[string][]int{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		require.NoError(t, err)
		if entry.IsDir() {
			return nil
		}
		if name, ok := recordfile.ParseName(entry.Name()); !ok || name.Partial {
			return nil
		}
		for _, record := range recordsOf(t, path) {
			for _, rp := range profiletest.Unmarshal(t, record).ResourceProfiles().All() {
				service, _ := rp.Resource().Attributes().Get("service.name")
				number, _ := rp.Resource().Attributes().Get("number")
				numbers[service.Str()] = append(numbers[service.Str()], int(number.Int()))
			}
		}
		return nil
	}))
	for _, n := range numbers {
		slices.Sort(n)
	}
	return numbers
}

func queueConfig(change func(q *exporterhelper.QueueBatchConfig)) configoptional.Optional[exporterhelper.QueueBatchConfig] {
	cfg := createDefaultConfig().(*Config)
	queue := *cfg.SendingQueue.GetOrInsertDefault()
	change(&queue)
	return configoptional.Some(queue)
}

// openUnblocked is recordfile.OpenDir, but fails for the groups that block names.
func openUnblocked(path string, group ...string) (recordfile.Dir, error) {
	place := filepath.Join(append([]string{path}, group...)...)
	if _, err := os.Stat(place + blocked); err == nil {
		return nil, &os.PathError{Op: "mkdir", Path: place, Err: syscall.EROFS}
	}
	return recordfile.OpenDir(path, group...)
}

const blocked = "+blocked"

// block makes openUnblocked refuse a group, until what it returns is called.
func block(t testing.TB, cfg *Config, group string) (unblock func()) {
	mark := filepath.Join(cfg.Directory, group) + blocked
	require.NoError(t, os.WriteFile(mark, nil, 0o600))
	return func() { require.NoError(t, os.Remove(mark)) }
}

// consume calls to, and returns with the error the profiles that a caller sends again.
func consume(ctx context.Context, to xconsumer.ConsumeProfilesFunc, pd pprofile.Profiles) (again pprofile.Profiles, err error) {
	err = to(ctx, pd)
	if failed, ok := errors.AsType[xconsumererror.Profiles](err); ok {
		pd = failed.Data()
	}
	return pd, err
}

// servicesOf gives the services in profiles, in order.
func servicesOf(t testing.TB, pd pprofile.Profiles) (services []string) {
	pd, err := dictionary.ResolveStrings(pd)
	require.NoError(t, err)
	for _, rp := range pd.ResourceProfiles().All() {
		service, _ := rp.Resource().Attributes().Get("service.name")
		services = append(services, service.Str())
	}
	return services
}

// TestPermanentErrorsAreNotRetried: a record that no file can hold keeps no other from
// being tried again, and is not tried again itself.
func TestPermanentErrorsAreNotRetried(t *testing.T) {
	cfg := newConfig(t, "service.name")
	e, telemetry, logs := observed(t, cfg)
	e.marshaler = marshalerFunc(func(pd pprofile.Profiles) ([]byte, error) {
		if slices.Contains(servicesOf(t, pd), "c") {
			return []byte("text"), nil
		}
		return (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	})
	require.NoError(t, e.start(t.Context(), nil))
	unblock := block(t, cfg, "b")
	pd, err := consume(t.Context(), e.consume, numbered(7, "a", "b", "c"))
	require.ErrorIs(t, err, syscall.EROFS)
	require.False(t, consumererror.IsPermanent(err))
	require.Equal(t, []string{"b"}, servicesOf(t, pd))
	unblock()
	_, err = consume(t.Context(), e.consume, pd)
	require.NoError(t, err)
	assert.EqualValues(t, 1, sum(t, telemetry, "errors", "invalid_record"))
	assert.Equal(t, 1, logs.FilterMessage("Rejected profiles permanently").Len())
	require.NoError(t, e.shutdown(t.Context()))
	assert.Equal(t, map[string][]int{"a": {7}, "b": {7}}, numbersIn(t, cfg.Directory))
}

// TestRetryWritesNothingTwice: one group fails many times. The others are written once, with
// the retries of the exporter, of its queue, and of a caller.
func TestRetryWritesNothingTwice(t *testing.T) {
	const payloads = 5
	for name, change := range map[string]func(cfg *Config){
		"exporter": func(*Config) {},
		"queue": func(cfg *Config) {
			cfg.SendingQueue = queueConfig(func(*exporterhelper.QueueBatchConfig) {})
		},
		"queue that waits": func(cfg *Config) {
			cfg.SendingQueue = queueConfig(func(q *exporterhelper.QueueBatchConfig) { q.WaitForResult = true })
		},
		"caller":              func(cfg *Config) { cfg.RetryOnFailure.Enabled = false },
		"exporter and caller": func(cfg *Config) { cfg.RetryOnFailure.MaxElapsedTime = 5 * time.Millisecond },
		"caller of a queue": func(cfg *Config) {
			cfg.SendingQueue = queueConfig(func(q *exporterhelper.QueueBatchConfig) { q.WaitForResult = true })
			cfg.RetryOnFailure.Enabled = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := newConfig(t, "service.name")
			cfg.RetryOnFailure.InitialInterval, cfg.RetryOnFailure.MaxInterval = time.Millisecond, time.Millisecond
			cfg.RetryOnFailure.MaxElapsedTime = 0
			change(cfg)
			unblock := block(t, cfg, "bad")
			own, telemetry, logs := observed(t, cfg)
			e := withRetriesAndQueue(t, own)
			require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
			var callers sync.WaitGroup
			for i := range payloads {
				callers.Go(func() {
					pd, err := consume(context.Background(), e.ConsumeProfiles, numbered(i, "a", "bad", "c"))
					for err != nil {
						assert.False(t, consumererror.IsPermanent(err))
						pd, err = consume(context.Background(), e.ConsumeProfiles, pd)
					}
				})
			}
			require.Eventually(t, func() bool {
				return logs.FilterMessageSnippet("Exporting failed.").Len() > 20*payloads
			}, time.Minute, time.Millisecond)
			unblock()
			callers.Wait()
			// With a queue, the callers do not wait for the last retries, and Shutdown would end them.
			require.Eventually(t, func() bool {
				return sum(t, telemetry, "records", "") >= 3*payloads
			}, time.Minute, time.Millisecond)
			require.NoError(t, e.Shutdown(t.Context()))
			want := []int{0, 1, 2, 3, 4}
			assert.Equal(t, map[string][]int{"a": want, "bad": want, "c": want}, numbersIn(t, cfg.Directory))
		})
	}
}

// TestTooLargeForTheQueue: the error is permanent, as a retry cannot succeed.
func TestTooLargeForTheQueue(t *testing.T) {
	stored, id := &profiletest.Storage{}, profiletest.StorageID
	const size = int(config.MiB)
	text := strings.Repeat("a", size)
	text = text[(&pprofile.ProtoMarshaler{}).ProfilesSize(numbered(1, text))-size:]
	for _, change := range []func(q *exporterhelper.QueueBatchConfig){
		func(*exporterhelper.QueueBatchConfig) {},
		func(q *exporterhelper.QueueBatchConfig) { q.StorageID, q.BlockOnOverflow = &id, true },
	} {
		cfg := newConfig(t)
		cfg.SendingQueue = queueConfig(func(q *exporterhelper.QueueBatchConfig) {
			q.QueueSize = int64(size)
			change(q)
		})
		own, telemetry, _ := observed(t, cfg)
		e := withRetriesAndQueue(t, own)
		require.NoError(t, e.Start(t.Context(), stored.Host()))
		require.NoError(t, e.ConsumeProfiles(t.Context(), numbered(1, text)), "as large as the queue")
		err := e.ConsumeProfiles(t.Context(), numbered(1, text, "b"))
		require.ErrorContains(t, err, "bytes exceeds sending_queue::queue_size (1048576)")
		assert.True(t, consumererror.IsPermanent(err))
		assert.Equal(t, int64(1), sum(t, telemetry, "errors", "too_large"))
		require.NoError(t, e.Shutdown(t.Context()))
	}
}

// TestGivenUpIsNotWritten: a caller who has gone sends again, and would have its
// profiles twice.
func TestGivenUpIsNotWritten(t *testing.T) {
	for _, queue := range []configoptional.Optional[exporterhelper.QueueBatchConfig]{
		configoptional.None[exporterhelper.QueueBatchConfig](),
		queueConfig(func(q *exporterhelper.QueueBatchConfig) { q.WaitForResult, q.NumConsumers = true, 1 }),
	} {
		cfg := createDefaultConfig().(*Config)
		cfg.Directory, cfg.SendingQueue = t.TempDir(), queue
		e, _ := startExporter(t, cfg)
		for i := range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, e.ConsumeProfiles(ctx, numbered(i, "a")), context.Canceled)
		}
		require.NoError(t, e.ConsumeProfiles(t.Context(), numbered(3, "a")))
		require.NoError(t, e.Shutdown(t.Context()))
		assert.Equal(t, []int{3}, numbersIn(t, cfg.Directory)["a"])
	}
}

// TestUndecodableQueueItemIsReported_E14: an item of the queue that cannot be restored is
// counted and logged. One that the queue does not have is not: after a write that failed it counts such an item, whose sender got
// an error.
func TestUndecodableQueueItemIsReported_E14(t *testing.T) {
	stored, err := request.MarshalProfiles(t.Context(), typed(t, []string{"a"}, "cpu")) // as a persistent queue does
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		item []byte
		lost int64
	}{
		"complete":      {stored, 0},
		"missing":       {nil, 0},
		"truncated":     {stored[:20], 1},
		"not ours":      {append([]byte{9}, stored[1:]...), 1},
		"too long":      {append(slices.Clone(stored), 1), 1},
		"empty":         {[]byte{}, 1},
		"older version": {[]byte(`[{"Data":12}]` + "\n"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			e, telemetry, logs := observed(t, newConfig(t, "service.name", "host.name"))
			items := encoding{xexporterhelper.NewProfilesQueueBatchSettings().Encoding, e}
			_, restored, err := items.Unmarshal(tt.item)
			lost := sum(t, telemetry, "errors", "convert")
			assert.Equal(t, tt.lost, lost)
			profiletest.Injected(t, fmt.Sprintf("1 stored items of another configuration or cut, %d counted losses", lost))
			switch {
			case tt.item == nil:
				require.ErrorIs(t, err, errNotStored)
				assert.Zero(t, logs.Len())
			case tt.lost == 0:
				require.NoError(t, err)
				again, err := items.Marshal(t.Context(), restored)
				require.NoError(t, err)
				assert.Equal(t, stored, again)
				assert.Zero(t, logs.Len())
			default:
				require.ErrorContains(t, err, "damaged or belongs to another exporter")
				require.Equal(t, 1, logs.FilterMessage("Dropped queued item").Len())
			}
		})
	}
}
