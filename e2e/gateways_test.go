// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/s3test"
)

// TestManyGatewaysOneView: two gateways get the intervals of each process in turns, drop what tells processes apart, and upload to one prefix.
// The page and otelprof show the sums and rates of the bucket as of one store, into which the same was written by one.
func TestManyGatewaysOneView(t *testing.T) {
	t.Run("small server", func(t *testing.T) { manyGateways(t, s3test.New(t).URL) })
	t.Run("MinIO", func(t *testing.T) {
		endpoint, _ := s3test.MinIO(t)
		manyGateways(t, endpoint)
	})
}

func manyGateways(t *testing.T, endpoint string) {
	t.Helper()
	begin := time.Now().UTC().Truncate(time.Hour).Add(-90 * time.Minute)
	all, one, location := fleet(begin), t.TempDir(), s3test.Path(endpoint, "prod")
	writeFleet(t, one, all)
	gateway := func(more ...string) (m *member, otlp, view string) {
		otlp, view = freeAddress(t), freeAddress(t)
		m = runConfig(t, program(t), "gateway.yaml", env{
			"OTLP_GRPC_LISTEN": freeAddress(t), "OTLP_HTTP_LISTEN": otlp, "VIEW_LISTEN": view, "DATA_DIR": t.TempDir(), "WINDOW": "300ms", "ACKNOWLEDGE": "on_receive",
		}, append(more, "--set=exporters.profiles_file.rotation.max_age=500ms", "--set=exporters.profiles_file.object_storage.endpoint="+endpoint,
			"--set=exporters.profiles_file.object_storage.bucket="+s3test.Bucket, "--set=exporters.profiles_file.object_storage.prefix=prod")...)
		return m, "http://" + otlp + otlpPath, "http://" + view
	}
	first, firstOTLP, _ := gateway()
	second, secondOTLP, _ := gateway()
	urls := []string{firstOTLP, secondOTLP}
	// A message has samples: the OTLP receiver of the Collector passes on no other ones, and so no interval that is idle alone.
	const each = 11 // profiles of a minute
	for minute := range fleetMinutes {
		var messages [2]pprofile.Profiles
		for i := range messages {
			messages[i] = pprofile.NewProfiles()
		}
		for i := range each {
			require.NoError(t, all[minute*each+i].payload(t).MergeTo(messages[(i+minute)%2]))
		}
		for i, pd := range messages {
			status, said, err := postOTLP(urls[i], profiletest.Proto(t, pd))
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, status, said)
		}
	}
	rows := func(path string) map[string]listing {
		code, out, errs, _ := otelprof(t, "ls", "--json", path)
		require.True(t, code == 0 || strings.Contains(errs, "no profiles match"), errs)
		found := map[string]listing{}
		for line := range strings.Lines(out) {
			var l struct {
				listing
				Service    string `json:"service"`
				SampleType string `json:"sample_type"`
			}
			require.NoError(t, json.Unmarshal([]byte(line), &l))
			found[l.Service+" "+l.SampleType] = l.listing
		}
		return found
	}
	want := rows(one)
	require.Len(t, want, 3)
	var got map[string]listing
	first.await(t, "all uploads", func() bool {
		got = rows(location)
		return got["checkout cpu"].Sum == want["checkout cpu"].Sum && got["cart cpu"].Sum == want["cart cpu"].Sum && got["checkout inuse_space"].Sum == want["checkout inuse_space"].Sum
	})
	first.stop(t)
	second.stop(t)

	viewer, _, view := gateway("--set=extensions.profiles_view.directory=" + location)
	page := map[string]listing{}
	viewer.await(t, "the page lists the bucket", func() bool {
		body := get(t, view+"/api/services?"+url.Values{"from": {begin.Format(time.RFC3339)}, "to": {begin.Add(time.Hour).Format(time.RFC3339)}}.Encode()).body
		var answer struct {
			Services []struct {
				listing
				Service    string `json:"service"`
				SampleType string `json:"sample_type"`
			} `json:"services"`
		}
		require.NoError(t, json.Unmarshal([]byte(body), &answer), body)
		for _, s := range answer.Services {
			page[s.Service+" "+s.SampleType] = s.listing
		}
		return len(page) > 0
	})
	viewer.stop(t)
	for name, shown := range map[string]map[string]listing{"otelprof": got, "the page": page} {
		require.Len(t, shown, len(want), name)
		for key, of := range want {
			assert.InDelta(t, of.Sum, shown[key].Sum, 0, "%s: sum of %s", name, key)
			assert.Equal(t, of.Processes, shown[key].Processes, "%s: processes of %s", name, key)
			if of.Rate > 0 {
				assert.InEpsilon(t, of.Rate, shown[key].Rate, 0.05, "%s: rate of %s", name, key)
				assert.InEpsilon(t, of.Covered, shown[key].Covered, 0.001, "%s: covered time of %s", name, key)
			}
		}
	}
}
