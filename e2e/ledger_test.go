// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// samplesOfPush is the number of samples in each push, all with unique labels.
const samplesOfPush = 3

// ledger accounts for every sample that clients push.
type ledger struct {
	mu     sync.Mutex
	pushes []*pushed
}

// pushed is one profile that a client pushes until it is acknowledged.
type pushed struct {
	data         []byte
	acknowledged bool
	// unknown counts attempts without a response, which may have been accepted.
	unknown int
}

func (l *ledger) begin(t *testing.T) *pushed {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	id := len(l.pushes)
	built := &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		TimeNanos:     time.Now().UnixNano(),
		DurationNanos: int64(time.Second),
	}
	for i := range 2 + id%5 {
		f := &profile.Function{ID: uint64(i + 1), Name: fmt.Sprintf("example.com/shop.(*Checkout).step%d", i)}
		built.Function = append(built.Function, f)
		built.Location = append(built.Location, &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f, Line: int64(id % 50)}}})
	}
	for part := range samplesOfPush {
		built.Sample = append(built.Sample, &profile.Sample{
			Location: built.Location, Value: []int64{valueOf(id, part)},
			Label: map[string][]string{"push": {fmt.Sprint(id)}, "part": {fmt.Sprint(part)}},
		})
	}
	p := &pushed{data: profiletest.Pprof(t, built)}
	l.pushes = append(l.pushes, p)
	return p
}

func valueOf(id, part int) int64 { return int64(1 + id*samplesOfPush + part) }

// clients start n clients that push to url until ctx is done. Each retries a profile until it is
// acknowledged, then pauses. The returned function waits for them.
func (l *ledger) clients(ctx context.Context, t *testing.T, n int, url string, pause time.Duration) (wait func()) {
	t.Helper()
	var clients sync.WaitGroup
	for range n {
		clients.Go(func() {
			client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				p := l.begin(t)
				for ctx.Err() == nil && !l.push(t, client, url, p) {
					time.Sleep(20 * time.Millisecond)
				}
				time.Sleep(pause)
			}
		})
	}
	return clients.Wait
}

// push sends a profile once and returns whether it needs no retry.
func (l *ledger) push(t *testing.T, client *http.Client, url string, p *pushed) (done bool) {
	response, err := client.Post(url+"/v1/pprof?service.name=shop", "application/octet-stream", bytes.NewReader(p.data))
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		p.unknown++
		return false
	}
	body, _ := io.ReadAll(response.Body) // only for the message below
	_ = response.Body.Close()
	switch response.StatusCode {
	case http.StatusNoContent:
		p.acknowledged = true
		return true
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return false
	default:
		t.Errorf("a good push was answered with %d: %s", response.StatusCode, body)
		return true
	}
}

func (l *ledger) anyAcknowledged() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.pushes, func(p *pushed) bool { return p.acknowledged })
}

// verify compares all files below dir with the acknowledged samples. Each is there with its value,
// once, or at most once more for each attempt without a response. So many pushes may be there more often. No other samples are there.
func (l *ledger) verify(t *testing.T, dir, injected string, mayDouble int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[[2]string]int64{} // sums by {push, part}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || entry.IsDir() || isHidden(path):
			return err
		case !fileName.MatchString(entry.Name()):
			t.Errorf("file %s is not named like a finished one", path)
			return nil
		}
		for _, p := range byService(slices.Concat(readFile(t, path)...))["shop"] {
			if p.Type != "cpu" {
				continue
			}
			for _, sample := range p.Samples {
				found[[2]string{expand.Text(sample.Attributes, "push"), expand.Text(sample.Attributes, "part")}] += sample.Sum.Int64()
			}
		}
		return nil
	})
	require.NoError(t, err)
	acknowledged, readable := 0, 0
	doubled := map[int]bool{}
	for id, p := range l.pushes {
		for part := range samplesOfPush {
			key := [2]string{fmt.Sprint(id), fmt.Sprint(part)}
			sum, value := found[key], valueOf(id, part)
			delete(found, key)
			times := sum / value
			least, most := int64(0), int64(p.unknown)
			if p.acknowledged {
				least, most = 1, most+1
				acknowledged++
				if times >= 1 {
					readable++
				}
			}
			if times > most {
				doubled[id] = true
			}
			if sum%value != 0 || times < least || times > most && mayDouble == 0 {
				t.Errorf("sample %v: the sum is %d, want %d times (%d to %d) %d", key, sum, times, least, most, value)
			}
		}
	}
	assert.Empty(t, found, "samples that were never pushed")
	assert.LessOrEqual(t, len(doubled), mayDouble, "pushes that are there more than once")
	assert.NotZero(t, acknowledged, "nothing was acknowledged")
	profiletest.Account(t, injected, acknowledged, readable, 0)
}
