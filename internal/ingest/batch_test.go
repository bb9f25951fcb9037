// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/foldedtranslator"
)

// The error of a payload after another one names the limit that it exceeds: not always that of all together.
func TestErrorOfALaterPayloadNamesItsLimit(t *testing.T) {
	const limit = 1000
	plain := func(n int) []byte { return make([]byte, n) }
	for name, row := range map[string]struct {
		later Payload
		err   string
	}{
		"all together, plain":      {Payload{Data: plain(901)}, "decompressed size in bytes of all profiles of the request: more than the limit of 1000"},
		"all together, compressed": {Payload{Data: profiletest.Gzip(t, plain(901))}, "decompressed size in bytes of all profiles of the request: more than the limit of 1000"},
		"window":                   {Payload{Data: []byte("\x28\xb5\x2f\xfd\x00\x90\x01\x00\x00")}, "zstd window in bytes: more than the limit of 134217728"},
		"labels":                   {Payload{Recording: Recording{Labels: profiletest.Gzip(t, plain(1001))}}, "decompressed size in bytes: more than the limit of 1000"},
	} {
		lease := budget.New(64 << 20).Lease(0)
		b := New(Settings{Logger: zap.NewNop()}, nil).NewBatch(lease)
		results := []*Result{{payload: Payload{Data: plain(100)}}, {payload: row.later}}
		require.NoError(t, b.decompress(t.Context(), results, limit))
		require.NoError(t, results[0].Err, name)
		require.EqualError(t, results[1].Err, row.err, name)
		lease.Release()
	}
}

// A payload that cannot be decompressed needs no work: its client must not be told to retry because others wait for some.
func TestMalformedPayloadDoesNotWaitForWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(64 << 20)
		one, next := b.Lease(0), b.Lease(time.Second)
		require.NoError(t, one.Take(one.MaxWork()))
		go func() {
			assert.NoError(t, next.Within(t.Context(), func() error { return next.Take(next.MaxWork()) }))
		}()
		synctest.Wait()

		in := newTestIngester(t, consumertest.NewNop())
		lease := b.Lease(time.Second)
		_, err := in.TranslateWithin(t.Context(), lease, Payload{Data: []byte("no pprof"), Resource: pcommon.NewMap()})
		assert.Equal(t, OutcomeMalformed, Outcome(err), "%v", err)
		one.Release()
		synctest.Wait()
		next.Release()
		_, err = in.TranslateWithin(t.Context(), lease, Payload{Data: []byte("\x1f\x8bno gzip"), Resource: pcommon.NewMap()})
		assert.Equal(t, OutcomeMalformed, Outcome(err), "%v", err)
		assert.Zero(t, b.InUse())
	})
}

// A translation that needs more than was estimated takes it, and is repeated if others hold that: the result is the same, with
// the same profile IDs, and of a recording in a file no chunk is left out or twice.
func TestTranslationsThatTakeMoreAreRepeated_M1(t *testing.T) {
	const limit = 32 << 20
	long := strings.Repeat("x", 100<<10)
	p := profiletest.CPUPprof("/bin/app", 1)
	for i := range 100 { // few bytes of which become many
		p.Sample = append(p.Sample, &profile.Sample{
			Location: p.Sample[0].Location, Value: p.Sample[0].Value, Label: map[string][]string{fmt.Sprint("key", i): {long}},
		})
	}
	repeated := profiletest.Pprof(t, p)
	var stacks bytes.Buffer
	for i := range 30_000 {
		fmt.Fprintf(&stacks, "f%d 1\n", i) // distinct frames of few bytes
	}
	for name, payload := range map[string]Payload{
		"repeated texts": {Data: profiletest.Gzip(t, repeated)},
		"folded":         {Data: stacks.Bytes(), Folded: &foldedtranslator.Unmarshaler{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				payload.Resource, payload.Arrived = pcommon.NewMap(), time.Unix(1_800_000_000, 0)
				b := budget.New(limit)
				in := newTestIngester(t, consumertest.NewNop())
				translate := func() (*Result, time.Duration) {
					start, lease := time.Now(), b.Lease(time.Second)
					r, err := in.TranslateWithin(t.Context(), lease, payload)
					require.NoError(t, err)
					assert.EqualValues(t, r.Bytes, lease.Used())
					assert.Less(t, int64(r.Bytes), lease.MaxWork())
					lease.Release()
					return r, time.Since(start)
				}
				alone, _ := translate()
				others := b.Lease(0)
				require.NoError(t, others.Take(others.MaxWork()-int64(alone.Bytes)/2))
				time.AfterFunc(time.Second/2, others.Release)
				waited, took := translate()
				assert.Equal(t, time.Second/2, took)
				assert.Equal(t, profilesIn(t, alone), profilesIn(t, waited))
				assert.Zero(t, b.InUse())

				others = b.Lease(0)
				require.NoError(t, others.Take(others.MaxWork()-int64(alone.Bytes)/2))
				require.True(t, others.KeepBaseline(limit/4))
				_, err := in.TranslateWithin(t.Context(), b.Lease(time.Second), payload)
				require.ErrorIs(t, err, budget.ErrFull)
				others.Release()
			})
			small := budget.New(4 << 20)
			_, err := newTestIngester(t, consumertest.NewNop()).TranslateWithin(t.Context(), small.Lease(time.Second), payload)
			assert.Equal(t, OutcomeTooLarge, Outcome(err), "%v", err)
			require.ErrorContains(t, err, "max_in_flight has 3145728")
		})
	}
}

func profilesIn(t *testing.T, r *Result) string {
	t.Helper()
	data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(r.Profiles)
	require.NoError(t, err)
	return string(data)
}
