// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestGoodPushesSucceedAmongBombs_R2 pushes bombs and valid profiles, 32 at a time, under a small
// GOMEMLIMIT. All valid ones are accepted, after 429 and a retry at worst, and peak memory is
// bounded.
func TestGoodPushesSucceedAmongBombs_R2(t *testing.T) {
	count := profiletest.Rounds(t, 100, 1000)
	const parallel, peakLimit = 32, 320 << 20
	address := freeAddress(t)
	files := filepath.Join(t.TempDir(), "profiles")
	t.Setenv("GOMEMLIMIT", "256MiB")
	c := run(t, address, files, fmt.Sprintf(`
receivers:
  pprof:
    max_in_flight: 24MiB
    server: {endpoint: %s, max_decompressed_size: 4MiB}
exporters:
  profiles_file: {directory: %s}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    profiles: {receivers: [pprof], exporters: [profiles_file]}
`, address, files))

	// Valid pushes have 1 MiB after decompression.
	large := profiletest.Pprof(t, &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		Sample:     []*profile.Sample{{Value: []int64{1}}},
		Comments:   []string{strings.Repeat("good", 1<<18)},
	})
	good, bombs := profiletest.Gzip(t, large), bombs(t)
	ways := waysToPush(t)
	var next, accepted, rejected, postponed atomic.Int64
	var clients sync.WaitGroup
	for range parallel {
		clients.Go(func() {
			for n := next.Add(1); n <= 2*int64(count); n = next.Add(1) {
				way := ways[int(n/2)%len(ways)]
				if n%2 == 0 {
					status := way.send(t, c.url, bombs[int(n/2)%len(bombs)])
					if status != way.tooLarge && status != http.StatusTooManyRequests {
						t.Errorf("a bomb by %s was answered with %d", way.path, status)
					}
					rejected.Add(1)
					continue
				}
				for {
					status := way.send(t, c.url, good)
					if status == way.success {
						accepted.Add(1)
						break
					}
					if status != http.StatusTooManyRequests {
						t.Errorf("a good push by %s was answered with %d", way.path, status)
						break
					}
					postponed.Add(1)
					time.Sleep(50 * time.Millisecond)
				}
			}
		})
	}
	clients.Wait()
	peak := memory(t, c.command.Process.Pid, "VmHWM:")
	profiletest.Account(t, fmt.Sprintf("%d bombs, %d times 429 before a good push was accepted, peak of memory %d MiB", rejected.Load(), postponed.Load(), peak>>20), count, int(accepted.Load()), 0)
	assert.Equal(t, int64(count), accepted.Load(), "accepted good pushes")
	assert.LessOrEqual(t, peak, int64(peakLimit), "peak of memory")
	c.stop(t)
}

// bombs returns small bodies that decompress to at least 64 MiB.
func bombs(t *testing.T) [][]byte {
	t.Helper()
	zeros := make([]byte, 8<<20)
	members, frames := slices.Repeat(profiletest.Gzip(t, zeros), 8), slices.Repeat(profiletest.Zstd(t, zeros), 8)
	return [][]byte{members, profiletest.Gzip(t, members), frames, profiletest.Gzip(t, frames), profiletest.Zstd(t, members)}
}

// wayToPush is an endpoint and the format of its requests.
type wayToPush struct {
	path    string
	success int
	// tooLarge is the status of a profile that is never accepted.
	tooLarge int
	wrap     func(t *testing.T, profile []byte) (contentType string, body []byte)
}

func waysToPush(t *testing.T) []wayToPush {
	t.Helper()
	form := func(name string, more ...profiletest.FormPart) func(*testing.T, []byte) (string, []byte) {
		return func(t *testing.T, profile []byte) (string, []byte) {
			t.Helper()
			body, header := profiletest.Form(t, append([]profiletest.FormPart{{Name: name, File: name, Body: profile}}, more...)...)
			return header[1], body
		}
	}
	return []wayToPush{
		{"/v1/pprof", http.StatusNoContent, http.StatusRequestEntityTooLarge, func(_ *testing.T, profile []byte) (string, []byte) { return "", profile }},
		{"/ingest?name=app", http.StatusOK, http.StatusRequestEntityTooLarge, form("profile")},
		{"/profiling/v1/input", http.StatusAccepted, http.StatusRequestEntityTooLarge, form("cpu.pprof", profiletest.FormPart{Name: "event", File: "event", Body: []byte("{}")})},
		// The status of Connect's invalid_argument: its clients retry after resource_exhausted.
		{"/push.v1.PusherService/Push", http.StatusOK, http.StatusBadRequest, func(_ *testing.T, profile []byte) (string, []byte) {
			return "application/proto", profiletest.PushRequest(profiletest.RawSeries(profile))
		}},
	}
}

// send pushes a profile and returns the status. It is safe for concurrent use.
func (way wayToPush) send(t *testing.T, url string, profile []byte) int {
	t.Helper()
	status, _ := way.post(t, url, profile)
	return status
}

// post is send that also returns whether the response asks for a retry.
func (way wayToPush) post(t *testing.T, url string, profile []byte) (status int, retry bool) {
	t.Helper()
	contentType, body := way.wrap(t, profile)
	got, err := ask(http.MethodPost, url+way.path, body, "Content-Type", contentType)
	assert.NoError(t, err)
	return got.status, got.header.Get("Retry-After") != ""
}

// memory returns a value in bytes of a process's status, such as "VmHWM:" for its peak RSS.
func memory(t testing.TB, pid int, key string) int64 {
	t.Helper()
	bytes, err := statusOf(pid, key)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("memory cannot be read: %v", err)
	}
	require.NoError(t, err)
	return bytes
}

func statusOf(pid int, key string) (bytes int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, value, found := strings.Cut(string(status), key)
	if !found {
		return 0, fmt.Errorf("there is no %s in %s", key, status)
	}
	kilobytes, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
	return kilobytes << 10, err
}
