// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"net/http"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bombs are small, and become at least 16 MiB.
func bombs(t *testing.T) map[string][]byte {
	t.Helper()
	zeros := make([]byte, 8<<20)
	member, frame := gzipped(t, zeros), zstandard(t, zeros)
	members := bytes.Repeat(member, 8)
	return map[string][]byte{
		"gzip of one member":   gzipped(t, bytes.Repeat(zeros, 2)),
		"gzip of many members": members,
		"gzip in gzip":         gzipped(t, members),
		"gzip in zstd":         zstandard(t, members),
		"zstd of one frame":    zstandard(t, bytes.Repeat(zeros, 2)),
		"zstd of many frames":  bytes.Repeat(frame, 8),
		"zstd stream":          zstdStream(t, bytes.Repeat(zeros, 2)),
		"zstd in gzip in gzip": gzipped(t, gzipped(t, bytes.Repeat(frame, 8))),
	}
}

// Row R2 of the faults: refused, at the cost of the limit and not of the bomb.
func TestBombs(t *testing.T) {
	b := startBench(t, "server: {endpoint: 127.0.0.1:0, max_decompressed_size: 4MiB, max_in_flight: 24MiB}", newSink(t))
	for name, bomb := range bombs(t) {
		t.Run(name, func(t *testing.T) {
			for _, encoding := range []string{"", compressionOf(bomb).name} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				got := b.push("", bomb, "Content-Encoding", encoding)
				runtime.ReadMemStats(&after)
				assert.Equal(t, http.StatusRequestEntityTooLarge, got.status, got.body)
				assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20), "bytes allocated for a limit of 4 MiB")
			}
		})
	}
	assert.Zero(t, b.server.budget.inUse())
}

// The other half of row R2: bombs do not keep good pushes out.
func TestGoodPushesAmongBombs(t *testing.T) {
	next := newSink(t)
	b := startBench(t, "server: {endpoint: 127.0.0.1:0, max_decompressed_size: 4MiB, max_in_flight: 24MiB}", next)
	var all [][]byte
	for _, bomb := range bombs(t) {
		all = append(all, bomb)
	}
	const clients, rounds = 32, 4
	good := gzipped(t, plain(t, samplePprof("/bin/app", 1)))
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for round := range rounds {
				if round%2 == 0 {
					status := b.push("", all[(client+round)%len(all)]).status
					assert.Contains(t, []int{http.StatusRequestEntityTooLarge, http.StatusTooManyRequests}, status)
					continue
				}
				for {
					got := b.push("", good)
					if got.status == http.StatusNoContent {
						break
					}
					if !assert.Equal(t, http.StatusTooManyRequests, got.status, got.body) {
						return
					}
				}
			}
		})
	}
	wg.Wait()
	assert.Equal(t, clients*rounds/2*2, next.SampleCount())
	assert.Zero(t, b.server.budget.inUse())
}

func TestReadBodyHoldsWhatHasArrived(t *testing.T) {
	budget := newBudget(1<<20, 0)
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	for _, expected := range []int64{-1, int64(len(data)), 5, 1 << 40} {
		held := budget.reserve()
		got, err := readBody(t.Context(), bytes.NewReader(data), expected, held)
		require.NoError(t, err)
		assert.Equal(t, data, got)
		assert.GreaterOrEqual(t, held.held, int64(cap(got)))
		assert.Less(t, held.held, int64(3*len(data)))
		held.release()
	}

	// Announced, but never sent.
	held := budget.reserve()
	_, err := readBody(t.Context(), bytes.NewReader(data[:10]), 1<<40, held)
	require.NoError(t, err)
	assert.EqualValues(t, smallestBuffer, held.held)
	held.release()

	held = newBudget(50_000, 0).reserve()
	_, err = readBody(t.Context(), bytes.NewReader(data), -1, held)
	require.NoError(t, err, "alone it may be larger than the budget")
}

// What unpack holds at its end is the result, no more.
func TestUnpackHoldsTheResult(t *testing.T) {
	data := plain(t, samplePprof("/bin/app", 3))
	for name, body := range map[string][]byte{
		"plain": data,
		"gzip":  gzipped(t, data),
		"zstd":  zstandard(t, data),
		"both":  gzipped(t, zstandard(t, data)),
	} {
		held := newBudget(1<<20, 0).reserve()
		require.NoError(t, held.resize(t.Context(), int64(cap(body))))
		got, err := unpack(t.Context(), body, 1<<20, held)
		require.NoError(t, err, name)
		assert.Equal(t, data, got, name)
		assert.EqualValues(t, cap(got), held.held, name)
	}
}

// Limits are exact: the last byte that fits, and the first that does not.
func TestUnpackLimitIsExact(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	for name, body := range map[string][]byte{
		"plain":       data,
		"gzip":        gzipped(t, data),
		"zstd":        zstandard(t, data),
		"zstd stream": zstdStream(t, data),
	} {
		held := newBudget(1<<30, 0).reserve()
		got, err := unpack(t.Context(), body, len(data), held)
		require.NoError(t, err, name)
		assert.Equal(t, data, got, name)
		_, err = unpack(t.Context(), body, len(data)-1, held)
		assert.Equal(t, http.StatusRequestEntityTooLarge, refusalOf(err).status, name)
	}
}
