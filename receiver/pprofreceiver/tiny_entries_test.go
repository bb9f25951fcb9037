// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// tinyEntries are gzipped, valid heap profiles of at most size bytes of pprof that are full
// of distinct entries of one kind.
func tinyEntries(t *testing.T, size int) map[string][]byte {
	t.Helper()
	integers := func(values ...uint64) (fields []byte) { // field, value, field, value...
		for i := 0; i < len(values); i += 2 {
			fields = protowire.AppendTag(fields, protowire.Number(values[i]), protowire.VarintType)
			fields = protowire.AppendVarint(fields, values[i+1])
		}
		return fields
	}
	packed := func(field protowire.Number, values ...uint64) []byte {
		var list []byte
		for _, v := range values {
			list = protowire.AppendVarint(list, v)
		}
		return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), list)
	}
	message := func(to []byte, field protowire.Number, content ...[]byte) []byte {
		to = protowire.AppendTag(to, field, protowire.BytesType)
		return protowire.AppendBytes(to, bytes.Join(content, nil))
	}
	const sampleType, sample, mapping, location, function, text = 1, 2, 3, 4, 5, 6
	bombs := map[string][]byte{}
	for name, add := range map[string]func(to []byte, i uint64) []byte{
		"samples": func(to []byte, i uint64) []byte {
			return message(to, sample, packed(1, 1+i%100, 1+i/100%100, 1+i/10000), packed(2, 1+i, 1))
		},
		"samples of zeros": func(to []byte, i uint64) []byte {
			return message(to, sample, packed(1, 1+i%100, 1+i/100%100, 1+i/10000), packed(2, 0, 0))
		},
		"labels": func(to []byte, i uint64) []byte {
			return message(to, sample, packed(1, 1), packed(2, 1, 1), message(nil, 3, integers(1, 1, 3, 1+i)))
		},
		"mappings":  func(to []byte, i uint64) []byte { return message(to, mapping, integers(1, 1+i, 2, i<<12)) },
		"locations": func(to []byte, i uint64) []byte { return message(to, location, integers(1, 1000+i, 3, i)) },
		"functions": func(to []byte, i uint64) []byte { return message(to, function, integers(1, (1+i)<<20, 2, 1)) },
		"strings":   func(to []byte, i uint64) []byte { return message(to, text, fmt.Appendf(nil, "%x", i)) },
	} {
		var p []byte
		for _, s := range []string{"", "alloc_objects", "inuse_objects", "count"} {
			p = message(p, text, []byte(s))
		}
		p = message(p, sampleType, integers(1, 1, 2, 3))
		p = message(p, sampleType, integers(1, 2, 2, 3))
		for i := range uint64(500) {
			p = message(p, location, integers(1, 1+i, 3, 16*i))
		}
		p = message(p, sample, packed(1, 1), packed(2, 1, 1))
		for i := uint64(0); len(p) < size-100; i++ {
			p = add(p, i)
		}
		bombs[name] = profiletest.Gzip(t, p)
	}
	return bombs
}

// peaks are the largest live heap, above that of the start, and the most bytes in flight.
func (b *testReceiver) peaks(do func()) (heap, inFlight int64) {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	before := heapInUse()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		ticker := time.NewTicker(100 * time.Microsecond)
		defer ticker.Stop()
		for {
			metrics.Read(live)
			heap, inFlight = max(heap, int64(live[0].Value.Uint64())-before), max(inFlight, b.inFlight.InUse())
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
		}
	})
	do()
	close(stop)
	watching.Wait()
	return heap, inFlight
}

// heapInUse is the memory of live objects.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// wayIn is a way to receive profiles: its configuration, and a function that sends all of them and
// checks the outcomes.
type wayIn struct {
	yaml string
	all  func(t *testing.T, b *testReceiver)
}

// Profiles that are full of tiny entries are accepted, or rejected permanently. Only while
// others are at work they may be rejected temporarily. The memory stays within the limit.
func TestTinyEntriesStayWithinTheLimit_M3(t *testing.T) {
	const limit = 8 << 20
	const sizes = "max_decompressed_size: 512KiB"
	bombs := tinyEntries(t, 512<<10)
	ways := map[string]wayIn{}
	for _, w := range protocols {
		ways[w.name] = wayIn{"", func(t *testing.T, b *testReceiver) {
			t.Helper()
			isTemporary := func(got answer) bool { return got.header.Get("Retry-After") != "" }
			var sending sync.WaitGroup
			for name, bomb := range bombs {
				for range 2 {
					sending.Go(func() {
						if got := b.sendBy(w, bomb); !isTemporary(got) {
							assertFinal(t, w, got, name)
						}
					})
				}
			}
			sending.Wait()
			for name, bomb := range bombs { // one after the other
				got := b.sendBy(w, bomb)
				assert.False(t, isTemporary(got), "%s: %s", name, got.body)
				assertFinal(t, w, got, name)
			}
		}}
	}

	var gone atomic.Bool
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(bombs[strings.Split(r.URL.Path, "/")[1]])
	}))
	defer target.Close()
	yaml := "remote:\n  collection_interval: 50ms\n  timeout: 5m\n  profiles: [heap]\n  " + sizes + "\n  targets:\n"
	for name := range bombs {
		yaml += "    - endpoint: '" + target.URL + "/" + strings.ReplaceAll(name, " ", "%20") + "'\n"
	}
	ways["scrape"] = wayIn{yaml, func(t *testing.T, b *testReceiver) {
		t.Helper()
		assert.Eventually(t, func() bool { return b.outcomes("")["success"]+b.outcomes("")["too_large"] >= 3*len(bombs) }, 5*time.Minute, time.Millisecond)
		outcomes := b.outcomes("")
		assert.Subset(t, []string{"success", "too_large"}, sortedKeys(outcomes), "%v", outcomes)
		gone.Store(true)
		require.Eventually(t, func() bool { // the last scrapes of all targets have ended
			ended := 0
			for _, point := range points[metricdata.Sum[int64]](b, "otelcol_receiver_pprof_scrapes").DataPoints {
				if outcome, _ := point.Attributes.Value("outcome"); outcome.AsString() == "status" {
					ended++
				}
			}
			return ended == len(bombs)
		}, 5*time.Minute, time.Millisecond)
	}}

	dir := t.TempDir()
	for name, bomb := range bombs {
		writeFile(t, filepath.Join(dir, name+".gz"), bomb, time.Now().Add(-time.Hour))
	}
	ways["file"] = wayIn{fileYAML(dir, ", "+sizes), func(t *testing.T, b *testReceiver) {
		t.Helper()
		ended := func() (n int64) {
			for _, files := range b.fileOutcomes() {
				n += files
			}
			return n
		}
		require.Eventually(t, func() bool { return ended() >= int64(len(bombs)) }, 5*time.Minute, time.Millisecond)
		assert.Subset(t, []string{"success", "too_large"}, sortedKeys(b.fileOutcomes()), "%v", b.fileOutcomes())
	}}

	small := profiletest.Gzip(t, plain(t, samplePprof("/bin/app", 1)))
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			b := newTestReceiver(t, way.yaml+"server: {endpoint: 127.0.0.1:0, "+sizes+"}\nmax_in_flight: "+fmt.Sprint(limit)+"\n",
				consumer(t, func(context.Context, pprofile.Profiles) error { return nil }))
			heap, inFlight := b.peaks(func() {
				b.start()
				way.all(t, b)
			})
			got := b.push("", small)
			for retry := 0; retry < 5 && got.header.Get("Retry-After") != ""; retry++ {
				time.Sleep(time.Second)
				got = b.push("", small)
			}
			assert.Equal(t, http.StatusNoContent, got.status)
			t.Logf("%d KiB in flight, %d KiB alive", inFlight>>10, heap>>10)
			assert.NotZero(t, inFlight)
			assert.LessOrEqual(t, inFlight, int64(limit))
			assert.Less(t, heap, int64(limit*3/2))
			profiletest.Injected(t, fmt.Sprintf("%d profiles of tiny entries", len(bombs)))
		})
	}
}

// assertFinal checks that a profile was accepted, or rejected as too large.
func assertFinal(t *testing.T, w protocol, got answer, name string) {
	t.Helper()
	assert.Contains(t, []int{w.success, w.tooLarge()}, got.status, "%s: %s", name, got.body)
}

// tooLarge is the status of a request that exceeds a limit.
func (w protocol) tooLarge() int {
	if strings.HasPrefix(w.name, "connect") {
		return http.StatusBadRequest
	}
	return http.StatusRequestEntityTooLarge
}
