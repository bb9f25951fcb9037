// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package bucket lists, reads and writes objects of Amazon S3 and of servers with its protocol.
//
// An object is read by requests of ranges, and the blocks that were used last stay in memory. Objects never change, so a block is known by
// the key and the ETag of its object, and each request names that ETag: an object that was replaced or removed after it was listed counts as
// removed. Credentials come from the environment, the shared file or the machine. No error, log or URL has them.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/httpguard"
	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
)

const (
	// attempts is how often a request is sent that fails for a time, such as by throttling.
	attempts = 5
	// connections is how many stay open: as many as files are read at once.
	connections = 32
	// answerTimeout is how long a server may take for the headers of its response, and metadataTimeout for credentials.
	answerTimeout, metadataTimeout = 20 * time.Second, 2 * time.Second
)

// Bucket is a location with the methods of its client that are used. A field with the client itself would keep its 300 other methods,
// 1 MB, in each program.
type Bucket struct {
	location Location
	cache    *cache

	host  string
	stats *Stats

	listObjects  func(context.Context, string, minio.ListObjectsOptions) iter.Seq[minio.ObjectInfo]
	getObject    func(context.Context, string, string, minio.GetObjectOptions) (io.ReadCloser, minio.ObjectInfo, http.Header, error)
	putObject    func(_ context.Context, bucket, key string, data io.Reader, size int64, md5, sha256 string, _ minio.PutObjectOptions) (minio.UploadInfo, error)
	statObject   func(context.Context, string, string, minio.StatObjectOptions) (minio.ObjectInfo, error)
	removeObject func(context.Context, string, string, minio.RemoveObjectOptions) error
	close        func()
}

// Open returns a client of the bucket of a location, which caches blocks in so many bytes. It sends no request.
func Open(location Location, memory int64, stats *Stats) (*Bucket, error) {
	return open(location, memory, attempts, stats)
}

// OpenOnce is Open of a client that sends each request once, for a caller with retries of its own.
func OpenOnce(location Location) (*Bucket, error) { return open(location, 0, 1, &Stats{}) }

func open(location Location, memory int64, attempts int, stats *Stats) (*Bucket, error) {
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
	return &Bucket{
		location: location, cache: newCache(memory), host: endpoint.Host, stats: stats, close: transport.CloseIdleConnections,
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

// Close closes idle connections.
func (b *Bucket) Close() { b.close() }

// Memory returns the bytes that cached blocks take.
func (b *Bucket) Memory() int64 { return b.cache.memory() }

// Stats counts what was read.
type Stats struct {
	Requests atomic.Int64
	Bytes    atomic.Int64
}

// StorageError says that an object store did not answer or denied access, so that nothing is known about the files.
type StorageError struct {
	Operation, Path string
	Err             error
}

func (e *StorageError) Error() string { return e.Operation + " " + e.Path + ": " + e.Err.Error() }

func (e *StorageError) Unwrap() error { return e.Err }

// IsStorageError reports whether err is or wraps a *StorageError.
func IsStorageError(err error) bool {
	_, is := errors.AsType[*StorageError](err)
	return is
}

// counting counts requests.
type counting struct {
	http.RoundTripper

	stats *Stats
}

// RoundTrip counts a request.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.stats.Requests.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// Path names an object or a prefix for people.
func (b *Bucket) Path(key string) string { return scheme + b.location.Bucket + "/" + key }

// fail returns the error of a request: it wraps fs.ErrNotExist if there is no such object any more, and else is an
// *StorageError. It has no URL, header or credentials.
func (b *Bucket) fail(ctx context.Context, operation, key string, err error) error {
	if ctx.Err() != nil {
		return &StorageError{Operation: operation, Path: b.Path(key), Err: context.Cause(ctx)}
	}
	response, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok {
		err = config.WithoutURL(err)
		if errors.Is(err, context.DeadlineExceeded) || os.IsTimeout(err) {
			err = errors.New("no answer in time from " + b.host)
		}
		return &StorageError{Operation: operation, Path: b.Path(key), Err: err}
	}
	switch {
	case response.Code == minio.NoSuchKey, response.StatusCode == http.StatusPreconditionFailed, response.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return &fs.PathError{Op: operation, Path: b.Path(key), Err: fs.ErrNotExist}
	case response.Code == minio.AccessDenied, response.StatusCode == http.StatusForbidden:
		err = fmt.Errorf("%s (%s): must be allowed for the credentials of the environment, ~/.aws/credentials or the machine", response.Message, response.Code)
	default:
		err = fmt.Errorf("%s (%s)", response.Message, response.Code)
	}
	return &StorageError{Operation: operation, Path: b.Path(key), Err: err}
}
