// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// scrapeTargets is the option for the targets of agent.yaml: a service for each name, at that path
// of a server.
func scrapeTargets(server string, names []string) string {
	var list []string
	for _, name := range names {
		list = append(list, fmt.Sprintf("{endpoint: '%s/%s', resource_attributes: {service.name: %s}}", server, name, name))
	}
	return "--set=receivers.pprof/scrape.remote.targets=[" + strings.Join(list, ", ") + "]"
}

// agentInContainer runs the shipped agent in a container, with a gateway that is there. It scrapes
// only heap profiles, and often.
func agentInContainer(t *testing.T, box *container, targets string, args ...string) (a, g *member, files string) {
	t.Helper()
	listen, files := freeAddress(t), t.TempDir()
	g = gateway(t, listen, nil)
	args = append(args, targets,
		"--set=receivers.pprof/scrape.remote.collection_interval=4s",
		"--set=receivers.pprof/scrape.remote.timeout=3s",
		"--set=receivers.pprof/scrape.remote.profiles=[heap]",
		"--set=receivers.profiles_file/files.poll_interval=200ms",
		"--set=processors.profiles_dedup/scrape.window=1s")
	return contained(t, box, "agent.yaml", env{"GATEWAY_ENDPOINT": listen, "FILES_DIR": files}, args...), g, files
}

// fakeTargets serves the body of each name at NAME/heap, an endless one at endless/heap, and a small
// heap profile, which grows, at small/heap.
func fakeTargets(t *testing.T, bodies map[string][]byte) *httptest.Server {
	t.Helper()
	part := make([]byte, 1<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		name := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/"), "/heap")
		switch name {
		case "endless":
			_, _ = w.Write([]byte{profileStrings<<3 | 2, 0xff, 0xff, 0xff, 0xff, 0x07})
			for {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		case "small":
			n := times.Add(1)
			_, _ = w.Write(profiletest.Pprof(t, profiletest.HeapPprof(n, 100*n, 1, 100)))
		default:
			_, _ = w.Write(bodies[name])
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// awaitScrapes waits until each target was scraped n times, whatever the outcome.
func awaitScrapes(t *testing.T, box *container, a *member, names []string, n int) {
	t.Helper()
	for round := range n {
		a.await(t, fmt.Sprintf("scrapes of round %d", round+1), func() bool {
			box.requireAlive(t, a.collector)
			for _, name := range names {
				if a.metric(t, "otelcol_receiver_pprof_scrapes", "/"+name+`"`) <= round {
					return false
				}
			}
			return true
		})
	}
}

// TestAgentSurvivesBombsAndEndlessBodies_M3 scrapes and reads bombs of tiny entries. Others are
// scraped and read beside them, and the agent stays within its container.
func TestAgentSurvivesBombsAndEndlessBodies_M3(t *testing.T) {
	parallel(t)
	bombs := tinyEntries(t, maxDecompressedSize)
	names := append(slices.Sorted(maps.Keys(bombs)), "endless", "small")
	server := fakeTargets(t, bombs)
	box := newContainer(t, containerLimit)
	a, g, files := agentInContainer(t, box, scrapeTargets(server.URL, names))
	for name, data := range bombs {
		drop(t, files, "filed", name+".pb.gz", data)
	}
	drop(t, files, "filed", "small.pb.gz", profiletest.Gzip(t, numbered(t, 7)))
	rounds := profiletest.Rounds(t, 2, 20)
	awaitScrapes(t, box, a, names, rounds)
	a.await(t, "files", func() bool {
		box.requireAlive(t, a.collector)
		return a.metric(t, "otelcol_receiver_profiles_file_files", `receiver="profiles_file/files"`) >= len(bombs)+1
	})
	g.await(t, "small profiles", func() bool {
		sums := totalsOf(g.written(t))
		return sums["filed cpu"] >= 7 && sums["small alloc_space"] > 0
	})
	peak := box.requireWithinLimit(t, a.collector)
	profiletest.Injected(t, fmt.Sprintf("%d bombs in scrapes, %d in files, peak of %d MiB", rounds*len(bombs), len(bombs), peak))
	a.stop(t)
	g.stop(t)
}

// TestAgentScrapesManyLargeHeaps_M4 scrapes a hundred heaps of 5 MB at once: in the container of the
// sidecar, for which they are too large, and in that of the agent.
func TestAgentScrapesManyLargeHeaps_M4(t *testing.T) {
	parallel(t)
	const targets, different = 100, 8
	heaps := map[string][]byte{}
	var names []string
	for i := range different {
		heaps[fmt.Sprintf("heap-%d", i)] = distinctSamples(t, "alloc_space", "bytes", 55_000)
	}
	for i := range targets {
		name := fmt.Sprintf("heap-%d", i)
		heaps[name] = heaps[fmt.Sprintf("heap-%d", i%different)]
		names = append(names, name)
	}
	names = append(names, "small")
	server := fakeTargets(t, heaps)
	rounds := profiletest.Rounds(t, 1, 20)
	for _, limit := range []int64{containerLimit, 2 * containerLimit} {
		box := newContainer(t, limit)
		a, g, _ := agentInContainer(t, box, scrapeTargets(server.URL, names))
		awaitScrapes(t, box, a, names, rounds)
		g.await(t, "the small profile", func() bool {
			box.requireAlive(t, a.collector)
			return totalsOf(g.written(t))["small alloc_space"] > 0
		})
		peak := box.requireWithinLimit(t, a.collector)
		profiletest.Injected(t, fmt.Sprintf("%d scrapes of %d bytes, peak of %d MiB", rounds*targets, len(heaps[names[0]]), peak))
		a.kill()
		g.kill()
	}
}
