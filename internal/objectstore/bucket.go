// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"os"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/httpguard"
)

const (
	// attempts is how often a request is sent that fails for a time, such as by throttling.
	attempts = 5
	// connections is how many stay open: as many as files are read at once.
	connections = 32
	// answerTimeout is how long a server may take for the headers of its response, and metadataTimeout for credentials.
	answerTimeout, metadataTimeout = 20 * time.Second, 2 * time.Second
)

// bucket is a location with the methods of its client that are used. A field with the client itself would keep its 300 other methods,
// 1 MB, in each program.
type bucket struct {
	Location

	host  string
	stats *archive.Stats

	listObjects  func(context.Context, string, minio.ListObjectsOptions) iter.Seq[minio.ObjectInfo]
	getObject    func(context.Context, string, string, minio.GetObjectOptions) (io.ReadCloser, minio.ObjectInfo, http.Header, error)
	putObject    func(_ context.Context, bucket, key string, data io.Reader, size int64, md5, sha256 string, _ minio.PutObjectOptions) (minio.UploadInfo, error)
	statObject   func(context.Context, string, string, minio.StatObjectOptions) (minio.ObjectInfo, error)
	removeObject func(context.Context, string, string, minio.RemoveObjectOptions) error
	close        func()
}

// openBucket returns a client of the location. It sends no request.
func openBucket(location Location, attempts int, stats *archive.Stats) (*bucket, error) {
	location = location.withEnvironment()
	endpoint, err := parseEndpoint("endpoint", location.Endpoint)
	if err != nil {
		return nil, err
	}
	secure := endpoint.Scheme == "https"
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	transport.ResponseHeaderTimeout, transport.MaxIdleConnsPerHost = answerTimeout, connections
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds: chain(location.Region), Secure: secure, Region: location.Region, MaxRetries: attempts, Transport: counting{transport, stats},
	})
	if err != nil {
		return nil, err
	}
	core := minio.Core{Client: client}
	return &bucket{
		Location: location, host: endpoint.Host, stats: stats, close: transport.CloseIdleConnections,
		listObjects: client.ListObjectsIter, getObject: core.GetObject, putObject: core.PutObject, statObject: client.StatObject, removeObject: client.RemoveObject,
	}, nil
}

// chain finds credentials where the tools of S3 do.
func chain(region string) *credentials.Credentials {
	providers := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	if os.Getenv("AWS_EC2_METADATA_DISABLED") != "true" {
		client := &http.Client{Timeout: metadataTimeout}
		httpguard.StayOnHost(client) // its requests have tokens
		providers = append(providers, &credentials.IAM{Client: client, Region: region})
	}
	return credentials.NewChainCredentials(providers)
}

// counting counts requests.
type counting struct {
	http.RoundTripper

	stats *archive.Stats
}

// RoundTrip counts a request.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.stats.Requests.Add(1)
	return c.RoundTripper.RoundTrip(r)
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
			err = errors.New("no answer in time from " + b.host)
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
