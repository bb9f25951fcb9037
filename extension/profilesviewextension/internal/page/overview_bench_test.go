// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkOverviewOfADay shows a day of 100 services with a profile in each minute, in 10,000 files with an index: cold
// as the first page after a restart, warm as those after it.
func BenchmarkOverviewOfADay(b *testing.B) {
	const services, files = 100, 100
	s := newSite(b)
	for i := range services {
		name := fmt.Sprintf("service-%03d", i)
		dir := filepath.Join(s.dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		const length = 24 * time.Hour / files
		for file := range files {
			end := s.now.Add(-time.Duration(file) * length)
			writeIndexed(b, dir, name, end.Add(-length), end)
		}
	}
	show := func(b *testing.B, p *Page) {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/?from=-24h", nil))
		if w.Code != http.StatusOK {
			b.Fatal(w.Code, w.Body)
		}
	}
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			show(b, New(s.settings))
		}
	})
	b.Run("warm", func(b *testing.B) {
		show(b, s.Page)
		for b.Loop() {
			show(b, s.Page)
		}
	})
}
