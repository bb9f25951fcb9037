// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"math"
	"net/http"
	"net/url"
	"os"
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
	kinds := map[string]*profile.Profile{}
	for _, name := range []string{"cpu", "heap"} {
		p, err := profile.ParseData(own[name])
		require.NoError(t, err)
		kinds[name] = p
	}
	now := time.Now()
	for i, service := range []string{"checkout", "inventory", "payments", "search"} {
		for minute := range 15 {
			load := 1 + 0.6*math.Sin(float64(minute*(i+1))/3+float64(i))
			for name, p := range kinds {
				scaled := p.Copy()
				scaled.Scale(load * float64(4-i) / 2)
				scaled.TimeNanos = now.Add(time.Duration(minute-15) * time.Minute).UnixNano()
				scaled.DurationNanos = 0
				if name == "cpu" {
					scaled.DurationNanos = int64(10 * time.Second)
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
