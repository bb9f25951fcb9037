// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is a server that notes the requests that it gets.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
}

func serve(t *testing.T, handler http.HandlerFunc) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r)
		s.mu.Unlock()
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusTemporaryRedirect) }
}

// configured adds headers to each request, as confighttp's client does.
type configured struct{ base http.RoundTripper }

func (c configured) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer secret")
	r.Header.Set("X-Scope-Orgid", "secret")
	return c.base.RoundTrip(r)
}

func newClient(t *testing.T) *http.Client {
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	return &http.Client{Transport: configured{base}}
}

func get(t *testing.T, client *http.Client, url string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("X-Own", "secret")
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body), nil
}

func answer(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") }

func TestStayOnHost_A3(t *testing.T) {
	thief := serve(t, answer)
	var own *server //nolint:staticcheck // the handler refers to it
	own = serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			redirect("/end")(w, r)
		case "/loop":
			redirect("/loop")(w, r)
		case "/away":
			redirect(thief.URL+"/end?q=secret")(w, r)
		default:
			answer(w, r)
		}
	})
	client := newClient(t)
	StayOnHost(client)
	body, err := get(t, client, own.URL+"/here")
	require.NoError(t, err)
	assert.Equal(t, "answer", body)
	for path, message := range map[string]string{"/away": "redirected to another host (" + thief.URL + "), which is not followed", "/loop": "redirected more than 5 times"} {
		_, err := get(t, client, own.URL+path)
		var refused *RedirectError
		require.ErrorAs(t, err, &refused, path)
		assert.Equal(t, message, refused.Error())
	}
	assert.Empty(t, thief.requests)
}

func TestFollowInPublicSendsNoCredentials_A3(t *testing.T) {
	var own, other *server
	other = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/back" {
			redirect(own.URL+"/end")(w, r)
			return
		}
		answer(w, r)
	})
	own = serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			redirect("/end")(w, r)
		case "/away":
			redirect(other.URL+"/end")(w, r)
		case "/back":
			redirect(other.URL+"/back")(w, r)
		default:
			answer(w, r)
		}
	})
	client := newClient(t)
	followInPublic(client, func(netip.Addr) bool { return true }) // the servers of the test are on this computer
	defer client.CloseIdleConnections()
	for _, path := range []string{"/here", "/away", "/back"} {
		body, err := get(t, client, own.URL+path)
		require.NoError(t, err, path)
		assert.Equal(t, "answer", body)
	}
	assert.Equal(t, "Bearer secret", own.requests[1].Header.Get("Authorization"), "after /here")
	require.Len(t, own.requests, 5)
	for _, r := range append(other.requests, own.requests[4]) { // the last came by way of the other host
		for name, values := range r.Header {
			assert.Contains(t, []string{"User-Agent", "Accept-Encoding"}, name)
			assert.NotContains(t, values, "secret")
		}
	}
	assert.Len(t, other.requests, 2)
}

func TestFollowInPublicAsksNoPrivateAddress_A3(t *testing.T) {
	other := serve(t, answer)
	own := serve(t, redirect(other.URL))
	client := newClient(t)
	FollowInPublic(client)
	defer client.CloseIdleConnections()
	_, err := get(t, client, own.URL)
	var refused *RedirectError
	require.ErrorAs(t, err, &refused)
	assert.Contains(t, refused.Error(), "no public address")
	assert.Empty(t, other.requests)

	secure := httptest.NewTLSServer(redirect(other.URL))
	defer secure.Close()
	downgraded := secure.Client()
	FollowInPublic(downgraded)
	_, err = get(t, downgraded, secure.URL)
	require.ErrorContains(t, err, "redirected from https to http://")
	assert.Empty(t, other.requests)
}

func TestSameHost(t *testing.T) {
	for _, c := range []struct {
		from, to string
		same     bool
	}{
		{"http://a", "http://A:80/x", true},
		{"http://a", "https://a/x", true},
		{"http://a:8080", "https://a:8080", true},
		{"http://a:8080", "https://a", false},
		{"https://a", "http://a", false},
		{"https://a", "https://a:443", true},
		{"https://a", "https://a:8443", false},
		{"https://a", "https://a.b", false},
		{"https://a", "https://a@b", false},
		{"http://[::1]:80", "http://[::1]", true},
	} {
		from, err := url.Parse(c.from)
		require.NoError(t, err)
		to, err := url.Parse(c.to)
		require.NoError(t, err)
		assert.Equal(t, c.same, sameHost(from, to), "%s to %s", c.from, c.to)
	}
}

func TestIsPublic(t *testing.T) {
	for _, text := range []string{
		"127.0.0.1", "127.8.8.8", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "0.1.2.3", "100.64.0.1", "100.100.100.200",
		"224.0.0.1", "255.255.255.255", "198.18.0.1", "::1", "::", "fe80::1%eth0", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
		"::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "fec0::1",
	} {
		assert.False(t, isPublic(netip.MustParseAddr(text)), text)
	}
	for _, text := range []string{"1.1.1.1", "8.8.8.8", "172.32.0.1", "::ffff:8.8.8.8", "2606:4700::1111"} {
		assert.True(t, isPublic(netip.MustParseAddr(text)), text)
	}
}
