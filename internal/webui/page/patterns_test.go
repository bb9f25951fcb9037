// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/queryapi"
)

// post calls a method of the query API with a JSON message.
func (s *site) post(ctx context.Context, method string, message any) *httptest.ResponseRecorder {
	s.t.Helper()
	body, err := json.Marshal(message)
	require.NoError(s.t, err)
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, queryapi.Prefix+method, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// requireCheap4xx: the answer comes within a second, and takes little memory.
func requireCheap4xx(t *testing.T, what string, answer func() *httptest.ResponseRecorder) (text string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	w := answer()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	assert.Equal(t, 4, w.Code/100, "%.80s: %d %.200s", what, w.Code, w.Body)
	assert.Less(t, took, time.Second, "%.80s", what)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20), "%.80s", what)
	return w.Body.String()
}

func TestHostilePatternsAreRejected_A2(t *testing.T) {
	s := newSite(t)
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 1)))
	large := `{pod=~"` + strings.Repeat("(x?){1000}", 799) + `"}` // 8 KB
	within := `{pod=~"(x?){900}(y?){900}"}`                       // what one selector may have
	for name, values := range map[string]url.Values{
		"three of 8 KB":           {"label": {large, large, large}},
		"one of 30 KB":            {"label": {`{pod=~"` + strings.Repeat("(x?){1000}", 3000) + `"}`}},
		"many matchers":           {"label": {"{" + strings.Repeat(`pod=~"(x?){1000}",`, 90) + "}"}},
		"many that fit alone":     {"label": {within, within, within, within}},
		"many parameters":         {"label": strings.Split(strings.Repeat("pod=a|", 1500), "|")},
		"huge classes":            {"label": {`{pod=~"` + strings.Repeat(`[\\PC]`, 1200) + `"}`}},
		"ranges that ignore case": {"label": {`{pod=~"(?i)` + strings.Repeat(`[B-𞥂]`, 1000) + `"}`}},
	} {
		query := values.Encode()
		for _, path := range []string{"/?" + query, "/api/services?" + query, "/api/profile?" + query, "/?service=checkout&base_" + query, "/trace/" + exampleTrace + "?" + query} {
			text := requireCheap4xx(t, name+" "+path, func() *httptest.ResponseRecorder { return s.get(path) })
			assert.Contains(t, text, "label", "%s %.60s", name, path)
			assert.Contains(t, text, "must have at most", "%s %.60s", name, path)
		}
	}
	hostile := `{pod=~"` + strings.Repeat("(x?){1000}", 390) + `"}` // 3.9 KB
	for method, message := range map[string]map[string]any{
		"LabelNames": {"matchers": []string{hostile}}, "LabelValues": {"name": "pod", "matchers": []string{hostile}}, "Series": {"matchers": []string{hostile}},
		"SelectMergeStacktraces": {"profile_typeID": typeCPU, "label_selector": hostile}, "SelectMergeProfile": {"profile_typeID": typeCPU, "label_selector": hostile},
		"SelectMergeSpanProfile": {"profile_typeID": typeCPU, "label_selector": hostile, "span_selector": []string{"00f067aa0ba902b7"}},
		"SelectSeries":           {"profile_typeID": typeCPU, "label_selector": hostile, "step": 1},
		"Diff":                   {"left": map[string]any{"profile_typeID": typeCPU, "label_selector": hostile}},
	} {
		text := requireCheap4xx(t, method, func() *httptest.ResponseRecorder { return s.post(t.Context(), method, message) })
		assert.Contains(t, text, "must have at most 10000 instructions in total", method)
	}
	names := map[string]any{"label_names": strings.Split(strings.Repeat("a,", 5000), ",")}
	assert.Contains(t, requireCheap4xx(t, "names", func() *httptest.ResponseRecorder { return s.post(t.Context(), "Series", names) }), "label_names has 5001 names: must have at most 100")
}

// TestWorkOfPatternsIsBounded_A2: 16 clients send an expression just below the limit of instructions, for 10,000 values of a label.
func TestWorkOfPatternsIsBounded_A2(t *testing.T) {
	s := newSite(t)
	var profiles []sent
	for i := range 10_000 {
		p := cpu("checkout", s.now.Add(-time.Minute), 1)
		p.label = fmt.Sprint("checkout-worker-", i)
		profiles = append(profiles, p)
	}
	s.write(payload(t, profiles...))
	selector := "{thread=~`(x?){900}(z?){900}(v?){150}.*y`}"
	query := url.Values{"label": {selector}}.Encode()
	for range 2 {
		for _, path := range []string{"/?" + query, "/api/services?" + query, "/api/profile?service=checkout&" + query} {
			w := s.get(path)
			assert.Equal(t, http.StatusBadRequest, w.Code, path)
			assert.Contains(t, w.Body.String(), "the instructions of the expressions times the bytes of the values must be at most", path)
		}
		w := s.post(t.Context(), "SelectMergeStacktraces", map[string]any{"profile_typeID": typeCPU, "label_selector": selector})
		assert.Equal(t, http.StatusBadRequest, w.Code)
		assert.Contains(t, w.Body.String(), "must be at most 134217728")
	}
	text, isError := assistantOf(s).ask("top", map[string]any{"labels": []string{selector}})
	assert.True(t, isError)
	assert.Contains(t, text, "must be at most 134217728")
	assert.Equal(t, http.StatusOK, s.get("/api/services?"+url.Values{"label": {"{thread=~`checkout-worker-[0-9]*7`}"}}.Encode()).Code)
}

// TestMatchingEndsWithItsClient_A2: a match takes longer than the client stays, and one is within the limit of work.
func TestMatchingEndsWithItsClient_A2(t *testing.T) {
	s := newSite(t)
	var profiles []sent
	for i := range 100 {
		p := cpu(fmt.Sprintf("%02d", i)+strings.Repeat("x", 15_000), s.now.Add(-time.Minute), 1)
		p.label = p.service
		profiles = append(profiles, p)
	}
	s.write(payload(t, profiles...))
	large := `=~".*` + strings.Repeat("x?", 3900) + `y"}`
	for _, label := range []string{"thread", "service_name"} {
		selector := "{" + label + large
		query := url.Values{"label": {selector}}.Encode()
		for name, answer := range map[string]func(context.Context){
			"page": func(ctx context.Context) {
				s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/services?"+query, nil))
			},
			"profile": func(ctx context.Context) {
				s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/profile?"+query, nil))
			},
			"query API": func(ctx context.Context) {
				w := s.post(ctx, "SelectMergeStacktraces", map[string]any{"profile_typeID": typeCPU, "label_selector": selector})
				assert.NotEqual(t, http.StatusOK, w.Code, w.Body)
			},
		} {
			ctx, leave := context.WithCancel(t.Context())
			start, left := time.Now(), time.Time{}
			time.AfterFunc(10*time.Millisecond, func() { left = time.Now(); leave() })
			answer(ctx)
			require.Error(t, ctx.Err(), "%s, %s: it is slow", name, label)
			assert.Less(t, time.Since(start), 3*time.Second, "%s, %s", name, label)
			assert.Less(t, time.Since(left), 2*time.Second, "%s, %s", name, label)
		}
	}
}

func TestAnswersAreCompleteOrErrors_A2(t *testing.T) {
	s := newSite(t)
	s.write(payload(t, cpu("checkout", s.now.Add(-time.Minute), 1)))
	ctx, leave := context.WithCancel(t.Context())
	_, _, err := s.response(httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil), func(http.ResponseWriter, *http.Request) error {
		leave() // what is matched from now on means nothing
		return nil
	}, nil)
	require.ErrorIs(t, err, context.Canceled)
}

func TestLabelNamesAreThoseOfAttributesIfTheClientAcceptsThem(t *testing.T) {
	s := newSite(t)
	s.write(payload(t, heap("checkout", "pod-1", s.now.Add(-time.Minute), 1)))
	names := func(accept ...string) (names []string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, queryapi.Prefix+"LabelNames", strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		r.Header["Accept"] = accept
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		var response struct{ Names []string }
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &response))
		return response.Names
	}
	for _, accept := range [][]string{nil, {"application/json"}, {"*/*;allow-utf8-labelnames=false"}, {"*/*; =; allow-utf8-labelnames=true"}, {"allow-utf8-labelnames=true"}} {
		assert.Contains(t, names(accept...), "service_instance_id", accept)
		assert.NotContains(t, names(accept...), "service.instance.id", accept)
	}
	for _, accept := range [][]string{{"*/*;allow-utf8-labelnames=true"}, {"application/json; allow-utf8-labelnames=true"}, {"text/html", "text/plain;q=0.5, application/json; allow-utf8-labelnames=true"}} {
		got := names(accept...)
		assert.Contains(t, got, "service.instance.id", accept)
		assert.NotContains(t, got, "service_instance_id", accept)
		assert.Contains(t, got, "service_name", "labels that are no attributes keep their names")
		assert.NotContains(t, got, "service.name")
	}
	w := s.post(t.Context(), "SelectMergeStacktraces", map[string]any{"profile_typeID": typeHeap, "label_selector": `{"service.instance.id"="pod-1"}`})
	assert.Contains(t, w.Body.String(), `"total":"1"`, "a name that was answered selects")
}
