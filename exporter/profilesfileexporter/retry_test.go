// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
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

// numbersIn gives the numbers of the records of a directory, sorted, by service.
func numbersIn(t testing.TB, dir string) map[string][]int {
	numbers := map[string][]int{}
	for _, record := range readStore(t, dir) {
		for _, rp := range profiletest.Unmarshal(t, record.data).ResourceProfiles().All() {
			service, _ := rp.Resource().Attributes().Get("service.name")
			number, _ := rp.Resource().Attributes().Get("number")
			numbers[service.Str()] = append(numbers[service.Str()], int(number.Int()))
		}
	}
	for _, n := range numbers {
		slices.Sort(n)
	}
	return numbers
}

// openUnblocked is layout.OpenDir, but fails for the groups that block names.
func openUnblocked(path string, inside ...string) (layout.Dir, error) {
	if len(inside) > 0 {
		if _, err := os.Stat(filepath.Join(path, blocked+inside[0])); err == nil {
			return nil, &os.PathError{Op: "mkdir", Path: filepath.Join(path, inside[0]), Err: syscall.EROFS}
		}
	}
	return layout.OpenDir(path, inside...)
}

const blocked = ".blocked-"

// block makes openUnblocked refuse a group, until what it returns is called.
func block(t testing.TB, cfg *Config, group string) (unblock func()) {
	mark := filepath.Join(cfg.Directory, blocked+layout.GroupDir(cfg.GroupBy[0], group))
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
// the retries of the exporter and of a caller.
func TestRetryWritesNothingTwice(t *testing.T) {
	const payloads = 5
	for name, change := range map[string]func(cfg *Config){
		"exporter":            func(*Config) {},
		"caller":              func(cfg *Config) { cfg.RetryOnFailure.Enabled = false },
		"exporter and caller": func(cfg *Config) { cfg.RetryOnFailure.MaxElapsedTime = 5 * time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := newConfig(t, "service.name")
			cfg.RetryOnFailure.InitialInterval, cfg.RetryOnFailure.MaxInterval = time.Millisecond, time.Millisecond
			cfg.RetryOnFailure.MaxElapsedTime = 0
			change(cfg)
			unblock := block(t, cfg, "bad")
			own, telemetry, logs := observed(t, cfg)
			e := withRetries(t, own)
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
			assert.EqualValues(t, 3*payloads, sum(t, telemetry, "records", ""))
			require.NoError(t, e.Shutdown(t.Context()))
			want := []int{0, 1, 2, 3, 4}
			assert.Equal(t, map[string][]int{"a": want, "bad": want, "c": want}, numbersIn(t, cfg.Directory))
		})
	}
}

// TestGivenUpIsNotWritten: a caller who has gone sends again, and would have its
// profiles twice.
func TestGivenUpIsNotWritten(t *testing.T) {
	cfg := newConfig(t)
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
