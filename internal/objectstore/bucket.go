// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
)

const (
	// attempts is how often a request is sent that fails for a time, such as by throttling.
	attempts = 5
	// answerTimeout is how long a server may take for the headers of its response, and metadataTimeout for credentials.
	answerTimeout, metadataTimeout = 20 * time.Second, 2 * time.Second
)

// bucket is a location with its client.
type bucket struct {
	Location

	client    *minio.Client
	transport http.RoundTripper
	stats     *archive.Stats
}

// openBucket returns a client of the location. It sends no request.
func openBucket(location Location, attempts int, stats *archive.Stats) (*bucket, error) {
	location = location.withEnvironment()
	endpoint, err := parseEndpoint("endpoint", location.Endpoint)
	if err != nil {
		return nil, err
	}
	b := &bucket{Location: location, stats: stats}
	secure := endpoint.Scheme == "https"
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	transport.ResponseHeaderTimeout = answerTimeout
	b.transport = transport
	b.client, err = minio.New(endpoint.Host, &minio.Options{
		Creds: chain(location.Region), Secure: secure, Region: location.Region, MaxRetries: attempts, Transport: b,
	})
	return b, err
}

// chain finds credentials where the tools of S3 do.
func chain(region string) *credentials.Credentials {
	providers := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	if os.Getenv("AWS_EC2_METADATA_DISABLED") != "true" {
		providers = append(providers, &credentials.IAM{Client: &http.Client{Timeout: metadataTimeout}, Region: region})
	}
	return credentials.NewChainCredentials(providers)
}

// RoundTrip counts a request.
func (b *bucket) RoundTrip(r *http.Request) (*http.Response, error) {
	b.stats.Requests.Add(1)
	return b.transport.RoundTrip(r)
}

func (b *bucket) close() {
	if t, ok := b.transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

// path names an object or a prefix for people.
func (b *bucket) path(key string) string { return scheme + b.Bucket + "/" + key }

// fail returns the error of a request: it wraps fs.ErrNotExist if there is no such object any more, and else is an
// *archive.StorageError. It has no URL, header or credentials.
func (b *bucket) fail(ctx context.Context, operation, key string, err error) error {
	if ctx.Err() != nil {
		return &archive.StorageError{Operation: operation, Path: b.path(key), Err: context.Cause(ctx)}
	}
	response, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok {
		err = config.WithoutURL(err)
		if errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err) {
			err = errors.New("no answer in time from " + b.client.EndpointURL().Host)
		}
		return &archive.StorageError{Operation: operation, Path: b.path(key), Err: err}
	}
	switch {
	case response.Code == minio.NoSuchKey, response.StatusCode == http.StatusPreconditionFailed, response.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return &fs.PathError{Op: operation, Path: b.path(key), Err: fs.ErrNotExist}
	case response.Code == minio.AccessDenied, response.StatusCode == http.StatusForbidden:
		err = fmt.Errorf("%s (%s): must be allowed for the credentials of the environment, ~/.aws/credentials or the machine", response.Message, response.Code)
	default:
		err = fmt.Errorf("%s (%s)", response.Message, response.Code)
	}
	return &archive.StorageError{Operation: operation, Path: b.path(key), Err: err}
}
