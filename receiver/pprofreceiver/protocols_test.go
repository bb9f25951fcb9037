// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
)

// protocol is a way to push one profile.
type protocol struct {
	name    string
	success int
	path    string
	wrap    func(t testing.TB, profile []byte) (body []byte, headers []string)
}

// protocols are all ways to push, as their clients use them.
var protocols = []protocol{
	{"pprof", http.StatusNoContent, "/v1/pprof?service.name=checkout", func(_ testing.TB, profile []byte) ([]byte, []string) {
		return profile, nil
	}},
	{"ingest form", http.StatusOK, "/ingest?name=checkout", func(t testing.TB, profile []byte) ([]byte, []string) {
		t.Helper()
		return form(t, formPart{"profile", "profile.pprof", profile})
	}},
	{"ingest raw", http.StatusOK, "/ingest?name=checkout&format=pprof", func(_ testing.TB, profile []byte) ([]byte, []string) {
		return profile, nil
	}},
	{"connect", http.StatusOK, httpserver.PushPath, func(_ testing.TB, profile []byte) ([]byte, []string) {
		return profiletest.PushRequest(profiletest.RawSeries(profile, "service_name", "checkout")), []string{"Content-Type", "application/proto"}
	}},
	{"connect JSON", http.StatusOK, httpserver.PushPath, func(t testing.TB, profile []byte) ([]byte, []string) {
		t.Helper()
		body, err := json.Marshal(map[string]any{"series": []any{map[string]any{
			"labels":  []any{map[string]any{"name": "service_name", "value": "checkout"}},
			"samples": []any{map[string]any{"rawProfile": base64.StdEncoding.EncodeToString(profile), "ID": "one"}},
		}}})
		require.NoError(t, err)
		return body, []string{"Content-Type", "application/json; charset=utf-8"}
	}},
	{"datadog", http.StatusAccepted, httpserver.DatadogPath, func(t testing.TB, profile []byte) ([]byte, []string) {
		t.Helper()
		return form(t,
			formPart{"cpu.pprof", "cpu.pprof", profile},
			formPart{"event", "event.json", []byte(`{"version":"4","family":"go","tags_profiler":"service:checkout"}`)})
	}},
}

// sendBy pushes a profile in this protocol. It may be called from any goroutine.
func (b *testReceiver) sendBy(w protocol, profile []byte) answer {
	b.t.Helper()
	body, headers := w.wrap(b.t, profile)
	return b.post(w.path, body, headers...)
}

// formPart is profiletest.FormPart, here so that literals need no field names.
type formPart struct {
	Name, File string
	Body       []byte
}

func form(t testing.TB, parts ...formPart) (body []byte, headers []string) {
	t.Helper()
	all := make([]profiletest.FormPart, len(parts))
	for i, p := range parts {
		all[i] = profiletest.FormPart(p)
	}
	return profiletest.Form(t, all...)
}

// arrived is a short form of a Profile.
type arrived struct {
	kind, sampleType, unit, temporality, display string
	value                                        int64
	time                                         uint64
	duration                                     time.Duration
}

func arrivals(t testing.TB, payloads ...pprofile.Profiles) (all []arrived) {
	t.Helper()
	for _, p := range profiletest.Expand(t, payloads...) {
		a := arrived{
			kind:       expand.Text(p.Scope.Attributes, "profile.type"),
			sampleType: p.Type, unit: p.Unit, time: p.Time, duration: time.Duration(p.Duration),
			temporality: expand.Text(p.Attributes, "profile.temporality"),
			display:     expand.Text(p.Attributes, "pyroscope.sample_type.display_name"),
		}
		for _, s := range p.Samples {
			a.value += s.Sum.Int64()
		}
		all = append(all, a)
	}
	return all
}

// assertHolds compares a payload with a pprof, apart from the attributes that the receiver adds.
func assertHolds(t *testing.T, want *profile.Profile, got pprofile.Profiles) {
	t.Helper()
	bare := pprofile.NewProfiles()
	got.CopyTo(bare)
	table := bare.Dictionary()
	for _, p := range bare.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		var kept []int32
		for _, i := range p.AttributeIndices().All() {
			key := table.StringTable().At(int(table.AttributeTable().At(int(i)).KeyStrindex()))
			if key != "profile.temporality" && !strings.HasPrefix(key, "pyroscope.sample_type.") {
				kept = append(kept, i)
			}
		}
		p.AttributeIndices().FromRaw(kept)
	}
	assert.Empty(t, expand.DiffPprof(want, bare))
}
