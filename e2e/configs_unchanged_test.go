// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestConfigsRunUnchanged changes only the variables of each configuration, so that windows and
// timeouts are those of users.
func TestConfigsRunUnchanged(t *testing.T) {
	parallel(t)
	want := map[string]int64{"checkout cpu": 7}
	finish := func(t *testing.T, last *member, direction string, before ...*member) {
		t.Helper()
		last.await(t, "profiles", func() bool {
			return last.metric(t, "otelcol_processor_profiles_dedup_"+direction+"_profiles") > 0
		})
		for _, m := range append(before, last) {
			m.stop(t)
		}
		last.requireSums(t, want)
	}
	begin := func(t *testing.T) (g *member, listen string) {
		listen = freeAddress(t)
		return runConfig(t, program(t), "gateway.yaml", env{"DATA_DIR": t.TempDir(), "OTLP_GRPC_LISTEN": listen, "OTLP_HTTP_LISTEN": freeAddress(t)}), listen
	}
	t.Run("sidecar and gateway", func(t *testing.T) {
		parallel(t)
		g, listen := begin(t)
		s := runConfig(t, program(t), "sidecar.yaml", env{"DATA_DIR": t.TempDir(), "PPROF_LISTEN": freeAddress(t), "GATEWAY_ENDPOINT": listen})
		s.push(t, "checkout", numbered(t, 7))
		finish(t, g, "outgoing", s)
		s.requireQuiet(t)
		g.requireQuiet(t)
	})
	t.Run("agent and gateway", func(t *testing.T) {
		parallel(t)
		g, listen := begin(t)
		files := t.TempDir()
		a := runConfig(t, program(t), "agent.yaml", env{
			"DATA_DIR": t.TempDir(), "FILES_DIR": files, "GATEWAY_ENDPOINT": listen, "SCRAPE_ENDPOINT": "http://" + freeAddress(t), // nobody is there
		})
		drop(t, files, "checkout", "1.pb.gz", profiletest.Gzip(t, numbered(t, 7)))
		finish(t, g, "outgoing", a)
		a.requireQuiet(t)
	})
	t.Run("files", func(t *testing.T) {
		parallel(t)
		files := t.TempDir()
		m := runConfig(t, program(t), "files.yaml", env{"DATA_DIR": t.TempDir(), "FILES_DIR": files})
		drop(t, files, "checkout", "1.pb.gz", profiletest.Gzip(t, numbered(t, 7)))
		finish(t, m, "outgoing")
	})
	t.Run("scrape", func(t *testing.T) {
		parallel(t)
		target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/profile") {
				_, _ = w.Write(numbered(t, 7))
			}
		}))
		defer target.Close()
		m := runConfig(t, program(t), "scrape.yaml", env{"DATA_DIR": t.TempDir(), "SCRAPE_ENDPOINT": target.URL + "/debug/pprof", "SCRAPE_SERVICE": "checkout"})
		m.await(t, "profiles", func() bool { return m.metric(t, "otelcol_processor_profiles_dedup_outgoing_profiles") > 0 })
		m.stop(t)
		if sum := totalsOf(m.written(t))["checkout cpu"]; sum == 0 || sum%7 != 0 {
			t.Errorf("the files have a sum of %d, want a multiple of 7", sum)
		}
	})
	t.Run("tier over Kafka", func(t *testing.T) {
		parallel(t)
		address := newBroker(t).ListenAddrs()[0]
		listen := freeAddress(t)
		writer := runConfig(t, kafkaProgram(t), "kafka/gateway-to-kafka.yaml", env{
			"KAFKA_BROKERS": address, "OTLP_GRPC_LISTEN": freeAddress(t), "OTLP_HTTP_LISTEN": listen,
		})
		reader := runConfig(t, kafkaProgram(t), "kafka/from-kafka.yaml", env{"KAFKA_BROKERS": address, "DATA_DIR": t.TempDir()})
		writer.url = "http://" + listen
		writer.sendOTLP(t, numbered(t, 7), "checkout", "1")
		finish(t, reader, "incoming", writer) // a stop flushes the window of 30s
	})
}
