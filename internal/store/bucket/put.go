// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// sumKey is the metadata of an object with the SHA-256 of its content.
const sumKey = "Sha256"

// List yields the objects whose key starts with prefix and is after another key, by key. An error is the last.
func (b *Bucket) List(ctx context.Context, prefix, after string) iter.Seq2[*Object, error] {
	return func(yield func(*Object, error) bool) {
		options := minio.ListObjectsOptions{Prefix: prefix, StartAfter: after, Recursive: true}
		for info := range b.listObjects(ctx, b.location.Bucket, options) {
			if info.Err != nil {
				yield(nil, b.fail(ctx, "list", prefix, info.Err))
				return
			}
			if !yield(b.Object(info.Key, info.Size, strings.Trim(info.ETag, `"`)), nil) {
				return
			}
		}
		if ctx.Err() != nil {
			yield(nil, b.fail(ctx, "list", prefix, ctx.Err()))
		}
	}
}

// Directories returns the names of what would be the directories of a prefix that ends in a slash, or is empty.
func (b *Bucket) Directories(ctx context.Context, prefix string) (names []string, err error) {
	for info := range b.listObjects(ctx, b.location.Bucket, minio.ListObjectsOptions{Prefix: prefix}) {
		if info.Err != nil {
			return nil, b.fail(ctx, "list", prefix, info.Err)
		}
		if name, is := strings.CutSuffix(strings.TrimPrefix(info.Key, prefix), "/"); is && name != "" {
			names = append(names, name)
		}
	}
	if ctx.Err() != nil {
		return nil, b.fail(ctx, "list", prefix, ctx.Err())
	}
	return names, nil
}

// Put stores a file. The server checks the SHA-256 that the request was signed with. Put never replaces an object; one of the same content
// is as good, as after a response that was lost. For another one the error is a *ConflictError.
func (b *Bucket) Put(ctx context.Context, key string, from io.ReaderAt, size int64, timeout time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(from, 0, size)); err != nil {
		return err
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	options := minio.PutObjectOptions{ContentType: "application/octet-stream", UserMetadata: map[string]string{sumKey: sum}, DisableContentSha256: true}
	options.SetMatchETagExcept("*")
	_, err := b.putObject(limited, b.location.Bucket, key, io.NewSectionReader(from, 0, size), size, "", sum, options)
	exists := minio.ToErrorResponse(err).StatusCode == http.StatusPreconditionFailed
	if err != nil && !exists {
		return b.fail(ctx, "put", key, err)
	}
	stored, err := b.statObject(limited, b.location.Bucket, key, minio.StatObjectOptions{})
	switch {
	case err != nil:
		return b.fail(ctx, "head", key, err)
	case exists && (stored.Size != size || stored.UserMetadata[sumKey] != sum):
		return &ConflictError{b.Path(key)}
	case stored.Size != size:
		return &StorageError{Operation: "put", Path: b.Path(key), Err: fmt.Errorf("object has %d bytes: must be %d, as were sent", stored.Size, size)}
	}
	return nil
}

// Remove removes an object, or nothing.
func (b *Bucket) Remove(ctx context.Context, key string, timeout time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := b.removeObject(limited, b.location.Bucket, key, minio.RemoveObjectOptions{}); err != nil {
		return b.fail(ctx, "delete", key, err)
	}
	return nil
}

// ConflictError says that there is another object of a name.
type ConflictError struct{ Path string }

func (e *ConflictError) Error() string {
	return "put " + e.Path + ": there is another object of this name, which stays; move it away"
}
