// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package objectstore

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

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// sumKey is the metadata of an object with the SHA-256 of its content.
const sumKey = "Sha256"

// list yields the objects whose key starts with prefix, by key. An error is the last.
func (b *bucket) list(ctx context.Context, prefix string) iter.Seq2[*object, error] {
	return func(yield func(*object, error) bool) {
		for info := range b.listObjects(ctx, b.Bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
			if info.Err != nil {
				yield(nil, b.fail(ctx, "list", prefix, info.Err))
				return
			}
			o := &object{bucket: b, key: info.Key, etag: strings.Trim(info.ETag, `"`), size: info.Size, modified: info.LastModified.UnixNano()}
			if !yield(o, nil) {
				return
			}
		}
		if ctx.Err() != nil {
			yield(nil, b.fail(ctx, "list", prefix, ctx.Err()))
		}
	}
}

// put stores a file or its index. The server checks the SHA-256 that the request was signed with. It never replaces an object; one of
// the same content is as good, as after a response that was lost.
func (u *Uploader) put(ctx context.Context, name string, from io.ReaderAt, size int64) error {
	limited, cancel := context.WithTimeout(ctx, u.options.Timeout)
	defer cancel()
	b, key := u.bucket, u.key(name)
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(from, 0, size)); err != nil {
		return err
	}
	sum := hex.EncodeToString(hash.Sum(nil))
	options := minio.PutObjectOptions{ContentType: "application/octet-stream", UserMetadata: map[string]string{sumKey: sum}, DisableContentSha256: true}
	options.SetMatchETagExcept("*")
	_, err := b.putObject(limited, b.Bucket, key, io.NewSectionReader(from, 0, size), size, "", sum, options)
	exists := minio.ToErrorResponse(err).StatusCode == http.StatusPreconditionFailed
	switch {
	case err != nil && !exists:
		return b.fail(ctx, "put", key, err)
	case err == nil && strings.HasSuffix(name, recordfile.IndexSuffix): // readers check its checksum
		return nil
	}
	stored, err := b.statObject(limited, b.Bucket, key, minio.StatObjectOptions{})
	switch {
	case err != nil:
		return b.fail(ctx, "head", key, err)
	case exists && (stored.Size != size || stored.UserMetadata[sumKey] != sum):
		return &ConflictError{b.path(key)}
	case stored.Size != size:
		return &archive.StorageError{Operation: "put", Path: b.path(key), Err: fmt.Errorf("object has %d bytes: must be %d, as were sent", stored.Size, size)}
	}
	return nil
}

// remove removes an object, or nothing.
func (b *bucket) remove(ctx context.Context, key string, timeout time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := b.removeObject(limited, b.Bucket, key, minio.RemoveObjectOptions{}); err != nil {
		return b.fail(ctx, "delete", key, err)
	}
	return nil
}
