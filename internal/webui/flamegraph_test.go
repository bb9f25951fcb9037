// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// drawing is the part of the data of a flame graph that says which stacks there are.
type drawing struct {
	Names, Places   []string
	Frames, Parents []int
	Self            [][]int64
}

func flameGraph(t *testing.T, p *profile.Profile, query string) (page string, d drawing) {
	t.Helper()
	handler, err := webui.Handler(p, webui.Options{})
	require.NoError(t, err)
	w := httptest.NewRecorder()
	webui.Protect(handler, func(*http.Request) bool { return false }).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/flamegraph"+query, nil))
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	assert.NotContains(t, w.Header().Get("Content-Security-Policy"), "unsafe")
	_, text, _ := strings.Cut(w.Body.String(), `id="data">`)
	text, _, _ = strings.Cut(text, "</script>")
	require.NoError(t, json.Unmarshal([]byte(text), &d))
	return w.Body.String(), d
}

// sums returns the values of all paths.
func (d drawing) sums(side int) map[string]int64 {
	paths, sums := make([]string, len(d.Frames)), map[string]int64{}
	for i := 1; i < len(d.Frames); i++ {
		paths[i] = paths[d.Parents[i]] + "\n" + d.Names[d.Frames[i]]
	}
	for i, value := range d.Self[side] {
		if value != 0 {
			sums[paths[i]] += value
		}
	}
	return sums
}

// TestFlameGraphHasTheValuesOfAllStacks compares it with sums over the samples, those of a difference by their sign.
func TestFlameGraphHasTheValuesOfAllStacks(t *testing.T) {
	seed := profiletest.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1)) // #nosec G404 -- a test
	for range 50 {
		p := profiletest.GeneratePprof(r)
		for i, sampleType := range p.SampleType {
			sampleType.Type = fmt.Sprint("type", i) // pprof rejects equal ones
		}
		index := len(p.SampleType) - 1
		p.DefaultSampleType = ""
		want := []map[string]int64{{}, {}}
		for _, s := range p.Sample {
			path := ""
			for _, name := range profiletest.StackOf(s) {
				path += "\n" + name
			}
			if v := s.Value[index]; v > 0 {
				want[0][path] += v
			} else if v < 0 {
				want[1][path] -= v
			}
		}
		_, d := flameGraph(t, p, "")
		for side := range want {
			if side < len(d.Self) {
				assert.Equal(t, want[side], d.sums(side))
			} else {
				assert.Empty(t, want[side])
			}
		}
	}
}

func TestFlameGraphFoldsTheSmallestBoxes(t *testing.T) {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}}
	const leaves = 205_000
	top := &profile.Location{ID: leaves + 1, Address: leaves + 1}
	p.Location = append(p.Location, top)
	total := int64(0)
	for i := range leaves {
		l := &profile.Location{ID: uint64(i + 1), Address: uint64(i + 1)}
		p.Location = append(p.Location, l)
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{l, top}, Value: []int64{int64(i + 1)}})
		total += int64(i + 1)
	}
	page, d := flameGraph(t, p, "")
	assert.LessOrEqual(t, len(d.Frames), 200_001)
	sum, sums := int64(0), d.sums(0)
	for _, v := range sums {
		sum += v
	}
	assert.Equal(t, total, sum)
	assert.Positive(t, sums[fmt.Sprintf("\n0x%x\n(other)", leaves+1)])
	assert.Contains(t, page, fmt.Sprintf(`<bdi class="name">0x%x</bdi>`, leaves), "the table without a script")
}

func TestFlameGraphIsFiltered(t *testing.T) {
	p := profiletest.Workloads()[0].Pprof(1)
	_, all := flameGraph(t, p, "")
	name := all.Names[len(all.Names)-1]
	_, focused := flameGraph(t, p, "?f="+url.QueryEscape(regexp.QuoteMeta(name)))
	assert.Less(t, len(focused.Frames), len(all.Frames))
	assert.Contains(t, focused.Names, name)
}

// TestHostilePatternsOfAPageAreRejected_A2: pprof compiles each part of tf and ti alone.
func TestHostilePatternsOfAPageAreRejected_A2(t *testing.T) {
	handler, err := webui.Handler(profiletest.HeapPprof(1, 2, 3, 4), webui.Options{})
	require.NoError(t, err)
	hostile := strings.Repeat("(x?){1000}", 10)
	for key, expression := range map[string]string{
		"f": hostile, "i": hostile, "h": hostile, "s": hostile, "sf": hostile, "prunefrom": hostile, "ts": hostile, "th": hostile,
		"tf": hostile, "ti": `key=\Q,` + hostile + `,\E`,
	} {
		for _, page := range []string{"top", "peek", "flamegraph", "graph", ""} {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+page+"?"+url.Values{key: {expression}}.Encode(), nil))
			assert.Equal(t, http.StatusBadRequest, w.Code, key)
			assert.Contains(t, w.Body.String(), key+": ")
			assert.Contains(t, w.Body.String(), "must have at most 10000 instructions in total")
		}
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/top?f=main.*&tf=key=a,b|c", nil))
	assert.Equal(t, http.StatusOK, w.Code)
}
