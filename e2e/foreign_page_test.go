// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestForeignPagesInABrowser_A6: Chromium opens a page of another site, which pushes to and queries the Collector of the person in all
// ways that a page has. Nothing is stored or returned. Its link to the page works.
func TestForeignPagesInABrowser_A6(t *testing.T) {
	parallel(t)
	b := startBrowser(t)
	c, addresses := runDefaultConfig(t)
	push, view := "http://"+addresses["localhost:4040"], "http://"+addresses["localhost:4041"]
	c.pushWith(t, map[string][]string{"service.name": {"own"}}, browsedProfile(t, time.Now().Add(-20*time.Second), 1, "main.handle"))

	var profile []byte // as a page would have it
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/profile" {
			_, _ = w.Write(profile)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, foreignPage, push, view)
	}))
	defer foreign.Close()
	profile = browsedProfile(t, time.Now().Add(-20*time.Second), 1, "main.evil")
	// An address is another site than a name, also of the same computer.
	address := strings.Replace(foreign.URL, "127.0.0.1", "localhost", 1)
	if strings.Contains(push, "localhost") {
		address = foreign.URL
	}
	b.open(address)
	require.Eventually(t, func() bool { return evaluate[string](b, `document.title`) == "done" }, patience, 20*time.Millisecond)
	assert.Empty(t, evaluate[string](b, `window.read`), "the page has read a response")

	metrics := func() string { return get(t, "http://"+addresses["localhost:8888"]+"/metrics").body }
	const rejected = `otelcol_receiver_pprof_rejected_requests{`
	c.await(t, "rejections", func() bool {
		for line := range strings.Lines(metrics()) {
			if strings.HasPrefix(line, rejected) && strings.Contains(line, `reason="foreign_page"`) && strings.Contains(line, `endpoint="/v1/pprof"`) {
				return strings.HasSuffix(strings.TrimSpace(line), " 3") // fetch, beacon, form
			}
		}
		return false
	})
	c.await(t, "the own profile", func() bool { return strings.Contains(get(t, view+"/api/services").body, `"own"`) })
	assert.NotContains(t, get(t, view+"/api/services").body, "evil")

	b.click(`//a[@id='link']`)
	b.requireText("the page", "Profiles", "own")
}

const foreignPage = `<!DOCTYPE html><title>working</title><body>
<a id="link" href="%[2]s/">a link to the page</a>
<iframe name="target"></iframe>
<form id="form" method="post" enctype="text/plain" target="target" action="%[1]s/v1/pprof?service.name=evil"><input name="a" value="b"></form>
<script>
window.read = '';
(async () => {
  const profile = await (await fetch('/profile')).blob();
  await fetch('%[1]s/v1/pprof?service.name=evil', {method: 'POST', mode: 'no-cors', body: profile}).catch(() => {});
  navigator.sendBeacon('%[1]s/v1/pprof?service.name=evil', profile);
  for (const path of ['/api/services', '/', '/querier.v1.QuerierService/ProfileTypes']) {
    await fetch('%[2]s' + path).then(r => r.text()).then(text => { window.read += text }).catch(() => {});
    await fetch('%[2]s' + path, {mode: 'no-cors'}).then(r => r.text()).then(text => { window.read += text }).catch(() => {});
  }
  await new Promise(resolve => { document.querySelector('iframe').onload = resolve; document.getElementById('form').submit() });
  document.title = 'done';
})();
</script>`
