// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpguard

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// maxRedirects is how many redirects of a request a client follows.
const maxRedirects = 5

// RedirectError says that a redirect is not followed, and why. It does not hold the query of a URL.
type RedirectError struct{ reason string }

func (e *RedirectError) Error() string { return e.reason }

// StayOnHost makes a client follow redirects on the host of the request only: those to its scheme, host and port, and
// from http to https there. The errors of others hold a *RedirectError.
func StayOnHost(client *http.Client) {
	client.CheckRedirect = func(request *http.Request, via []*http.Request) error {
		if to := request.URL; !sameHost(via[0].URL, to) {
			return &RedirectError{fmt.Sprintf("redirected to another host (%s://%s), which is not followed", to.Scheme, to.Host)}
		}
		return checkCount(via)
	}
}

// FollowInPublic makes a client that sends GET only follow redirects. What leads to another host is followed without
// what the client adds to requests (credentials, headers, certificates), without a proxy, never from https to http,
// and never to an address that is not public: of this computer, of a private network or of a cloud's metadata.
func FollowInPublic(client *http.Client) { followInPublic(client, isPublic) }

func followInPublic(client *http.Client, allowed func(netip.Addr) bool) {
	check := func(_ context.Context, _, address string, _ syscall.RawConn) error {
		resolved, err := netip.ParseAddrPort(address)
		if err != nil || !allowed(resolved.Addr()) {
			return &RedirectError{fmt.Sprintf("redirected to %s, which is no public address and is not asked", address)}
		}
		return nil
	}
	dialer := &net.Dialer{Timeout: 30 * time.Second, ControlContext: check}
	configured := client.Transport
	if configured == nil {
		configured = http.DefaultTransport
	}
	client.Transport = &leaving{configured: configured, plain: &http.Transport{
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second,
	}}
	client.CheckRedirect = func(request *http.Request, via []*http.Request) error {
		to, last := request.URL, via[len(via)-1].URL
		if last.Scheme == "https" && to.Scheme != "https" {
			return &RedirectError{fmt.Sprintf("redirected from https to %s://%s, which is not followed", to.Scheme, to.Host)}
		}
		// Once it has left the host, a request stays without credentials, also if it is redirected back.
		left := func(r *http.Request) bool { return !sameHost(via[0].URL, r.URL) }
		if left(request) || slices.ContainsFunc(via, left) {
			*request = *request.WithContext(context.WithValue(request.Context(), leftKey{}, true))
		}
		return checkCount(via)
	}
}

func checkCount(via []*http.Request) error {
	if len(via) > maxRedirects {
		return &RedirectError{fmt.Sprintf("redirected more than %d times", maxRedirects)}
	}
	return nil
}

// leftKey marks the context of a request that was redirected to another host. The transport below the client may be
// given a copy of the request, but has its context.
type leftKey struct{}

func hasLeft(ctx context.Context) bool { return ctx.Value(leftKey{}) != nil }

// leaving sends requests that have left the host as bare ones.
type leaving struct{ configured, plain http.RoundTripper }

// RoundTrip sends a request, without its headers if it has left the host.
func (l *leaving) RoundTrip(request *http.Request) (*http.Response, error) {
	if !hasLeft(request.Context()) {
		return l.configured.RoundTrip(request)
	}
	bare := request.Clone(request.Context())
	bare.Header = http.Header{}
	return l.plain.RoundTrip(bare)
}

// CloseIdleConnections is called by that of the client.
func (l *leaving) CloseIdleConnections() {
	for _, transport := range []http.RoundTripper{l.configured, l.plain} {
		if closer, ok := transport.(interface{ CloseIdleConnections() }); ok {
			closer.CloseIdleConnections()
		}
	}
}

// sameHost reports whether a URL has the scheme, host and port of another one, or is the same with https in place of
// http.
func sameHost(from, to *url.URL) bool {
	upgrade := from.Scheme == "http" && to.Scheme == "https"
	switch {
	case !strings.EqualFold(from.Hostname(), to.Hostname()):
		return false
	case from.Scheme == to.Scheme:
		return portOf(from) == portOf(to)
	}
	return upgrade && (from.Port() == to.Port() || portOf(from) == "80" && portOf(to) == "443")
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// notPublic are the ranges that netip does not know as private: of this network, of providers, of tests, and those
// that embed an address of version 4 for a gateway.
var notPublic = func() (prefixes []netip.Prefix) {
	for _, text := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "fec0::/10",
	} {
		prefixes = append(prefixes, netip.MustParsePrefix(text))
	}
	return prefixes
}()

func isPublic(address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	if !address.IsGlobalUnicast() || address.IsPrivate() {
		return false
	}
	for _, prefix := range notPublic {
		if prefix.Contains(address) {
			return false
		}
	}
	return true
}
