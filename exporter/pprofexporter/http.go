// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofexporter

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
)

// httpClient sends series by POST.
type httpClient struct {
	client    *http.Client
	endpoint  *url.URL
	protocol  string
	userAgent string
}

func newHTTPClient(ctx context.Context, config *Config, host component.Host, set exporter.Settings) (*httpClient, error) {
	endpoint, err := url.Parse(config.HTTP.Endpoint)
	if err != nil {
		return nil, err
	}
	client, err := config.HTTP.ToClient(ctx, host.GetExtensions(), set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	// Credentials would go to another server, too.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	switch {
	case config.Protocol == protocolPyroscope:
		endpoint = endpoint.JoinPath("push.v1.PusherService/Push")
	case strings.Trim(endpoint.Path, "/") == "":
		endpoint.Path = "/v1/pprof"
	}
	return &httpClient{client, endpoint, config.Protocol, userAgent(set)}, nil
}

func userAgent(set exporter.Settings) string {
	return set.BuildInfo.Command + "/" + set.BuildInfo.Version
}

func (c *httpClient) close() error {
	c.client.CloseIdleConnections()
	return nil
}

func (c *httpClient) send(ctx context.Context, s *series) *failure {
	request, err := c.request(ctx, s)
	if err != nil {
		return &failure{error: config.WithoutURL(err), reason: reasonConvert}
	}
	response, err := c.client.Do(request)
	if err != nil {
		return &failure{error: fmt.Errorf("sending a profile: %w", config.WithoutURL(err)), ends: true}
	}
	defer response.Body.Close()
	if response.StatusCode/100 == 2 { // whatever happens to the body
		_, _ = io.CopyN(io.Discard, response.Body, maxMessage) // so that the connection can be used again
		return nil
	}
	message, _ := io.ReadAll(io.LimitReader(response.Body, maxMessage))
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(message), "\uFFFD")), " ")
	return newHTTPFailure(response, text)
}

// maxMessage is how much is read of a response, in bytes.
const maxMessage = 1024

// request returns the request of a series.
func (c *httpClient) request(ctx context.Context, s *series) (*http.Request, error) {
	to, body, contentType := *c.endpoint, s.pprof, "application/octet-stream"
	switch {
	case c.protocol == protocolPyroscope:
		body, contentType = pushRequest(s), "application/proto"
	case path.Base(to.Path) == "ingest":
		to.RawQuery = ingestQuery(to.Query(), s).Encode()
	default:
		to.RawQuery = attributeQuery(to.Query(), s).Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("User-Agent", c.userAgent)
	if c.protocol == protocolPyroscope {
		request.Header.Set("Connect-Protocol-Version", "1")
	}
	return request, nil
}

// nameText replaces what separates the parts of a name of /ingest, which has no escapes.
var nameText = strings.NewReplacer("{", "_", "}", "_", ",", "_", "=", "_")

// ingestQuery adds the parameters of Pyroscope's /ingest: name=service{label=value,...}, a time range and the format.
func ingestQuery(query url.Values, s *series) url.Values {
	var labels []string
	for _, l := range s.labels {
		if l.name != labelProfileName && l.name != labelServiceName {
			labels = append(labels, l.name+"="+nameText.Replace(l.value))
		}
	}
	query.Set("name", nameText.Replace(s.service)+"{"+strings.Join(labels, ",")+"}")
	query.Set("from", strconv.FormatInt(s.profile.TimeNanos, 10))
	query.Set("until", strconv.FormatInt(s.profile.TimeNanos+s.profile.DurationNanos, 10))
	query.Set("format", "pprof")
	return query
}

// attributeQuery adds the parameters of /v1/pprof of the pprof receiver: the profile type, and the attributes of the
// resource. A name without a dot has one before it, as it would be that of an option of the receiver.
func attributeQuery(query url.Values, s *series) url.Values {
	for key, value := range s.resource.All() {
		if !strings.Contains(key, ".") {
			key = "." + key
		}
		query.Set(key, textOf(value))
	}
	if s.profileType != "" {
		query.Set("profile_type", s.profileType)
	}
	return query
}

// newHTTPFailure says what a response with an error means. 500 may concern one series only.
func newHTTPFailure(response *http.Response, message string) *failure {
	code := response.StatusCode
	failed := &failure{error: fmt.Errorf("the server returned status %d: %s", code, message)}
	switch {
	case code >= 300 && code < 400:
		failed.error, failed.reason = fmt.Errorf("the server redirects (status %d)%s, which is not followed: set endpoint", code, target(response)), reasonOther
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500 && code != http.StatusNotImplemented:
		failed.delay = retryAfter(response.Header.Get("Retry-After"))
		failed.ends = code != http.StatusInternalServerError
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		failed.reason = reasonUnauthorized
	case code == http.StatusRequestEntityTooLarge:
		failed.reason = reasonTooLarge
	case code == http.StatusBadRequest, code == http.StatusUnprocessableEntity:
		failed.reason = reasonInvalid
	default:
		failed.reason = reasonOther
	}
	return failed
}

// target names where a response redirects to, without credentials and query.
func target(response *http.Response) string {
	to, err := response.Location()
	if err != nil {
		return ""
	}
	return " to " + (&url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}).String()
}

// retryAfter reads a number of seconds or a date. Without one, it is 0.
func retryAfter(header string) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(header); err == nil {
		return time.Until(date)
	}
	return 0
}
