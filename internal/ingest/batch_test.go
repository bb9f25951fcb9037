// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
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
		held := NewInFlight(64 << 20).Reserve(0)
		b := New(Settings{}, nil).NewBatch(held)
		results := []*Result{{payload: Payload{Data: plain(100)}}, {payload: row.later}}
		require.NoError(t, b.decompress(t.Context(), results, limit))
		require.NoError(t, results[0].Err, name)
		require.EqualError(t, results[1].Err, row.err, name)
		held.Release()
	}
}

// A payload that cannot be decompressed needs no work: its client must not be told to retry because others wait for some.
func TestMalformedPayloadDoesNotWaitForWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewInFlight(64 << 20)
		one, other, next := f.Reserve(0), f.Reserve(0), f.Reserve(time.Second)
		require.NoError(t, one.Take(t.Context(), Work, f.MaxWork()))
		require.NoError(t, other.Take(t.Context(), Work, f.MaxWork()/2))
		go func() { assert.NoError(t, next.Take(t.Context(), Work, f.MaxWork())) }()
		synctest.Wait()

		_, err := New(Settings{Unmarshaler: &pproftranslator.Unmarshaler{Limits: pproftranslator.Limits{DecompressedSize: 1 << 20}}}, nil).
			NewBatch(f.Reserve(time.Second)).TranslateOne(t.Context(), Payload{Data: []byte("\x1f\x8bno gzip"), Resource: pcommon.NewMap()})
		assert.Equal(t, OutcomeMalformed, Outcome(err), "%v", err)
		one.Release()
		other.Release()
		synctest.Wait()
	})
}
