// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// TestAgent checks that the gateway has the sums of a scraped server and of files. Files read
// before a SIGKILL arrive although the gateway was away, and are not read again.
func TestAgent(t *testing.T) {
	parallel(t)
	target := &growing{t: t}
	server := httptest.NewServer(target)
	defer server.Close()
	data, files, listen := t.TempDir(), t.TempDir(), freeAddress(t)
	begin := func() *member {
		return runConfig(t, program(t), "agent.yaml", env{
			"DATA_DIR": data, "FILES_DIR": files, "GATEWAY_ENDPOINT": listen,
			"SCRAPE_ENDPOINT": server.URL, "SCRAPE_SERVICE": "scraped",
		}, quick["agent.yaml"]...)
	}
	drop := func(service, name string, value int64) {
		path := filepath.Join(files, service, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".tmp", compressed(t, numbered(t, value)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".tmp", path); err != nil {
			t.Fatal(err)
		}
	}
	a := begin()
	for i := range 5 {
		drop("filed", fmt.Sprintf("%d.pb.gz", i), 1<<i)
	}
	a.await(t, "files", func() bool { return a.metric(t, "otelcol_receiver_pprof_files", `outcome="success"`) == 5 })
	a.await(t, "scrapes", target.enough)
	a.await(t, "windows passed on", func() bool {
		in := a.metric(t, "otelcol_processor_profiles_dedup_incoming_profiles")
		return in > 0 && in == a.metric(t, "otelcol_processor_profiles_dedup_outgoing_profiles")
	})
	a.kill()

	g := gateway(t, listen, nil)
	drop("filed", "5.pb.gz", 1<<5)
	a = begin()
	a.await(t, "the new file", func() bool { return a.metric(t, "otelcol_receiver_pprof_files", `outcome="success"`) == 1 })
	want := map[string]int64{
		"filed cpu":           1<<6 - 1,
		"scraped cpu":         7 * served,
		"scraped alloc_space": 1000 * (served - 1),
	}
	a.await(t, "sums at the gateway", func() bool {
		got := totalsOf(g.written(t))
		delete(got, "scraped inuse_space") // grows with each scrape
		return fmt.Sprint(got) == fmt.Sprint(want)
	})
	a.stop(t)
	g.stop(t)
}
