// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
)

// TestPictureOfThePage makes the picture of the README: PICTURE is its path. `make picture` runs it. The
// services have real profiles of this process, as if taken once a minute.
func TestPictureOfThePage(t *testing.T) {
	path := os.Getenv("PICTURE")
	if path == "" {
		t.Skip("PICTURE is not set")
	}
	b := startBrowser(t)
	c, addresses := runDefaultConfig(t)
	cpu := profileOf(t, "", func(w io.Writer) error { return recordCPU(w, 2*time.Second) })
	heap := profileOf(t, "heap", nil)
	now := time.Now()
	for i, service := range []string{"checkout", "inventory", "payments", "search"} {
		for minute := range 15 {
			load := 1 + 0.6*math.Sin(float64(minute*(i+1))/3+float64(i))
			for name, p := range map[string]*profile.Profile{"cpu": cpu, "heap": heap} {
				scaled := p.Copy()
				scaled.Scale(load * float64(4-i) / 2)
				scaled.TimeNanos = now.Add(time.Duration(minute-15) * time.Minute).UnixNano()
				scaled.DurationNanos = 0
				if name == "cpu" {
					scaled.DurationNanos = int64(time.Minute)
				}
				var body bytes.Buffer
				require.NoError(t, scaled.Write(&body))
				query := url.Values{"service.name": {service}, "profile_type": {name}}
				require.Equal(t, http.StatusNoContent, c.do(t, http.MethodPost, query, body.Bytes()).status)
			}
		}
	}
	view := "http://" + addresses["localhost:4041"]
	c.await(t, "the services in the page", func() bool {
		_, body := get(t, view+"/api/services")
		return strings.Contains(body, `"search"`)
	})
	b.do(chromedp.EmulateViewport(1280, 620))
	b.open(view)
	require.NoError(t, os.WriteFile(path, resultOf(b, chromedp.CaptureScreenshot()), 0o600))
}

// profileOf reads a profile of this process: the one of this name, or what record writes.
func profileOf(t *testing.T, name string, record func(io.Writer) error) *profile.Profile {
	t.Helper()
	if record == nil {
		record = func(w io.Writer) error { return pprof.Lookup(name).WriteTo(w, 0) }
	}
	var body bytes.Buffer
	require.NoError(t, record(&body))
	p, err := profile.Parse(&body)
	require.NoError(t, err)
	return p
}

// recordCPU profiles some work.
func recordCPU(w io.Writer, length time.Duration) error {
	if err := pprof.StartCPUProfile(w); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	for start := time.Now(); time.Since(start) < length; {
		text, err := json.Marshal(map[string]any{"items": make([]float64, 10_000), "time": time.Now()})
		if err != nil {
			return err
		}
		writer, err := flate.NewWriter(io.Discard, flate.BestCompression)
		if err != nil {
			return err
		}
		if _, err := writer.Write(text); err != nil {
			return err
		}
	}
	return nil
}
