// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// wire is a way to push one profile.
type wire struct {
	name    string
	success int
	path    string
	wrap    func(t *testing.T, profile []byte) (body []byte, headers []string)
}

// wires are all ways to push, as the clients of each go them.
var wires = []wire{
	{"pprof", http.StatusNoContent, "/v1/pprof?service.name=checkout", func(_ *testing.T, profile []byte) ([]byte, []string) {
		return profile, nil
	}},
	{"ingest form", http.StatusOK, "/ingest?name=checkout", func(t *testing.T, profile []byte) ([]byte, []string) {
		t.Helper()
		return form(t, formPart{"profile", "profile.pprof", profile})
	}},
	{"ingest raw", http.StatusOK, "/ingest?name=checkout&format=pprof", func(_ *testing.T, profile []byte) ([]byte, []string) {
		return profile, nil
	}},
	{"connect", http.StatusOK, connectPath, func(_ *testing.T, profile []byte) ([]byte, []string) {
		return pushRequest(seriesMessage(profile, "service_name", "checkout")), []string{"Content-Type", "application/proto"}
	}},
	{"connect JSON", http.StatusOK, connectPath, func(t *testing.T, profile []byte) ([]byte, []string) {
		t.Helper()
		body, err := json.Marshal(map[string]any{"series": []any{map[string]any{
			"labels":  []any{map[string]any{"name": "service_name", "value": "checkout"}},
			"samples": []any{map[string]any{"rawProfile": base64.StdEncoding.EncodeToString(profile), "ID": "one"}},
		}}})
		require.NoError(t, err)
		return body, []string{"Content-Type", "application/json; charset=utf-8"}
	}},
	{"datadog", http.StatusAccepted, datadogPath, func(t *testing.T, profile []byte) ([]byte, []string) {
		t.Helper()
		return form(t,
			formPart{"cpu.pprof", "cpu.pprof", profile},
			formPart{"event", "event.json", []byte(`{"version":"4","family":"go","tags_profiler":"service:checkout"}`)})
	}},
}

// send pushes a profile by this wire. It may be called from any goroutine.
func (b *bench) sendBy(w wire, profile []byte) answer {
	b.t.Helper()
	body, headers := w.wrap(b.t, profile)
	a, err := b.send(http.MethodPost, w.path, bytes.NewReader(body), headers...)
	assert.NoError(b.t, err)
	return a
}

type formPart struct {
	name, file string
	body       []byte
}

// form makes a body of parts, and the header that goes with it.
func form(t *testing.T, parts ...formPart) ([]byte, []string) {
	t.Helper()
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	for _, p := range parts {
		header := textproto.MIMEHeader{}
		disposition := `form-data; name="` + p.name + `"`
		if p.file != "" {
			disposition += `; filename="` + p.file + `"`
		}
		header.Set("Content-Disposition", disposition)
		to, err := w.CreatePart(header)
		require.NoError(t, err)
		_, err = to.Write(p.body)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return buf.Bytes(), []string{"Content-Type", w.FormDataContentType()}
}

// seriesMessage writes a RawProfileSeries of one profile, with labels name, value,
// name, value...
func seriesMessage(profile []byte, labels ...string) []byte {
	var series []byte
	for i := 0; i < len(labels); i += 2 {
		var pair []byte
		pair = protowire.AppendString(protowire.AppendTag(pair, labelPairName, protowire.BytesType), labels[i])
		pair = protowire.AppendString(protowire.AppendTag(pair, labelPairValue, protowire.BytesType), labels[i+1])
		series = protowire.AppendBytes(protowire.AppendTag(series, seriesLabels, protowire.BytesType), pair)
	}
	var sample []byte
	sample = protowire.AppendBytes(protowire.AppendTag(sample, rawSampleRawProfile, protowire.BytesType), profile)
	sample = protowire.AppendString(protowire.AppendTag(sample, 2, protowire.BytesType), "734FD599-6865-419E-9475-932762D8F469")
	return protowire.AppendBytes(protowire.AppendTag(series, seriesSamples, protowire.BytesType), sample)
}

func pushRequest(series ...[]byte) []byte {
	var request []byte
	for _, s := range series {
		request = protowire.AppendBytes(protowire.AppendTag(request, pushRequestSeries, protowire.BytesType), s)
	}
	return request
}

// attributesOf are those of the resource and of the scope of the one payload.
func (s *sink) attributesOf() (resource, scope map[string]any) {
	s.t.Helper()
	rp := s.only().ResourceProfiles().At(0)
	return rp.Resource().Attributes().AsRaw(), rp.ScopeProfiles().At(0).Scope().Attributes().AsRaw()
}

// profileView is a Profile written out.
type profileView struct {
	sampleType, unit string
	attributes       map[string]string
	time, duration   uint64
}

// views are the Profiles of a payload.
func views(t *testing.T, s *sink, payload int) []profileView {
	t.Helper()
	var all []profileView
	pd := s.AllProfiles()[payload]
	table := pd.Dictionary().StringTable()
	for _, p := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		v := profileView{
			sampleType: table.At(int(p.SampleType().TypeStrindex())),
			unit:       table.At(int(p.SampleType().UnitStrindex())),
			attributes: map[string]string{},
			time:       uint64(p.Time()),
			duration:   p.DurationNano(),
		}
		for _, i := range p.AttributeIndices().All() {
			a := pd.Dictionary().AttributeTable().At(int(i))
			v.attributes[table.At(int(a.KeyStrindex()))] = a.Value().AsString()
		}
		all = append(all, v)
	}
	return all
}

// assertHolds compares what came with a pprof, but for the attributes that the
// receiver gives Profiles of its own.
func assertHolds(t *testing.T, want *profile.Profile, got pprofile.Profiles) {
	t.Helper()
	bare := pprofile.NewProfiles()
	got.CopyTo(bare)
	table := bare.Dictionary()
	for _, p := range bare.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		var kept []int32
		for _, i := range p.AttributeIndices().All() {
			key := table.StringTable().At(int(table.AttributeTable().At(int(i)).KeyStrindex()))
			if key != "profile.temporality" && key != attributeDisplayName && key != attributeDisplayUnits {
				kept = append(kept, i)
			}
		}
		p.AttributeIndices().FromRaw(kept)
	}
	assert.Empty(t, profiletest.DiffPprof(want, bare))
}
