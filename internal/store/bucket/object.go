// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/minio/minio-go/v7"
)

const (
	// maxRequest is how many bytes one request reads at most.
	maxRequest = 4 << 20
	// maxGap is how many blocks that nobody needs are read rather than sending another request.
	maxGap = 8
	// bodyTimeout is how long the response of one request may take.
	bodyTimeout = time.Minute
)

// Object is an object as it was listed.
type Object struct {
	Key  string
	Size int64
	ETag string

	bucket *Bucket
}

// Range is some bytes of an object; the End 0 stands for its end.
type Range struct{ Start, End int64 }

// Reader reads blocks of the cache, and those that it has not with those that follow, up to end. Its error is a *StorageError, or wraps
// fs.ErrNotExist if the object was removed or changed after it was listed.
func (o *Object) Reader(ctx context.Context, end int64) io.ReaderAt {
	return &reader{object: o, ctx: ctx, end: end, number: -1}
}

// Object returns an object that was listed before.
func (b *Bucket) Object(key string, size int64, etag string) *Object {
	return &Object{Key: key, Size: size, ETag: etag, bucket: b}
}

func (o *Object) block(number int64) blockKey { return blockKey{o.bucket, o.Key, o.ETag, number} }

// span is a range of blocks: [first, end).
type span struct{ first, end int64 }

// Fetch reads the blocks of the parts that the cache has not. Those of parts that are close are in one request.
func (o *Object) Fetch(ctx context.Context, parts []Range) {
	for _, s := range o.missing(parts) {
		if _, err := o.fetch(ctx, s); err != nil {
			return // readers have it
		}
	}
}

// missing returns the blocks to request, each span at once. The parts are in order.
func (o *Object) missing(parts []Range) []span {
	var spans []span
	for _, part := range parts {
		end := part.End
		if end == 0 {
			end = o.Size
		}
		for number := part.Start / blockSize; number*blockSize < min(end, o.Size); number++ {
			n := len(spans) - 1
			switch {
			case o.bucket.cache.get(o.block(number)) != nil:
			case n >= 0 && number < spans[n].end+maxGap && number < spans[n].first+maxRequest/blockSize:
				spans[n].end = max(spans[n].end, number+1)
			default:
				spans = append(spans, span{number, number + 1})
			}
		}
	}
	return spans
}

// fetch reads blocks into the cache, and returns the first.
func (o *Object) fetch(ctx context.Context, s span) (first []byte, err error) {
	data, err := o.get(ctx, s.first*blockSize, min(s.end*blockSize, o.Size))
	if err != nil {
		return nil, err
	}
	for number := s.first; len(data) > 0; number++ {
		block := bytes.Clone(data[:min(blockSize, len(data))])
		data = data[len(block):]
		if first == nil {
			first = block
		}
		o.bucket.cache.put(o.block(number), block)
	}
	return first, nil
}

// get reads a range of the object. A response that ends too early is requested again.
func (o *Object) get(ctx context.Context, from, to int64) (data []byte, err error) {
	for range attempts {
		data, err = o.try(ctx, from, to)
		if !errors.Is(err, io.ErrUnexpectedEOF) || ctx.Err() != nil {
			break
		}
	}
	if err == nil {
		return data, nil
	}
	if _, isChange := errors.AsType[*changeError](err); isChange {
		return nil, err
	}
	return nil, o.bucket.fail(ctx, "get", o.Key, err)
}

// changeError says that an object is not as it was listed.
type changeError struct{ listed, got string }

func (e *changeError) Error() string {
	return fmt.Sprintf("the response is %s: must be %s, as the object was listed", e.got, e.listed)
}

func (o *Object) try(ctx context.Context, from, to int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, bodyTimeout)
	defer cancel()
	var options minio.GetObjectOptions
	err := options.SetRange(from, to-1)
	if err == nil && o.ETag != "" {
		err = options.SetMatchETag(o.ETag)
	}
	if err != nil {
		return nil, err
	}
	body, _, header, err := o.bucket.getObject(ctx, o.bucket.location.Bucket, o.Key, options)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	want := fmt.Sprintf("bytes %d-%d/%d", from, to-1, o.Size)
	if got := header.Get("Content-Range"); got != want {
		return nil, &changeError{want, fmt.Sprintf("%q", got)}
	}
	data := make([]byte, to-from)
	n, err := io.ReadFull(body, data)
	o.bucket.stats.Bytes.Add(int64(n))
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}

// reader reads an object in blocks.
type reader struct {
	object *Object
	ctx    context.Context
	end    int64 // where the part ends that is read
	number int64 // of the block
	block  []byte
}

// ReadAt is not safe for concurrent use: each file has a reader of its own.
func (r *reader) ReadAt(p []byte, offset int64) (n int, err error) {
	for n < len(p) && offset < r.object.Size {
		if err := r.seek(offset / blockSize); err != nil {
			return n, err
		}
		copied := copy(p[n:], r.block[offset%blockSize:])
		n, offset = n+copied, offset+int64(copied)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// seek makes a block the current one.
func (r *reader) seek(number int64) error {
	if r.number == number {
		return nil
	}
	o := r.object
	block := o.bucket.cache.get(o.block(number))
	if block == nil {
		s := span{number, number + 1}
		most := max(1, min(maxRequest, o.bucket.cache.limit/8)/blockSize)
		for s.end-s.first < most && s.end*blockSize < r.end && o.bucket.cache.get(o.block(s.end)) == nil {
			s.end++
		}
		var err error
		if block, err = o.fetch(r.ctx, s); err != nil {
			return err
		}
	}
	r.number, r.block = number, block
	return nil
}
