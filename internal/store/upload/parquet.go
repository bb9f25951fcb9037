// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package upload

import (
	"context"
	"errors"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/lake"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// Parquet says what becomes of Parquet files. A file whose segment exists is uploaded after the segments, and then removed from the directory,
// so that those in the directory are the queue.
type Parquet struct {
	// MaxAge is how long after its day an object is removed. 0 is never.
	MaxAge time.Duration
	// Uploaded gets a file that the bucket has now and the directory has not, by its path below that.
	Uploaded func(path string, bytes int64)
}

func (u *Uploader) parquetRetention() (r lake.Retention) {
	if u.options.Parquet != nil {
		r.MaxAge = u.options.Parquet.MaxAge
	}
	return r
}

// parquetFiles returns the Parquet files that never change any more.
func (u *Uploader) parquetFiles() (committed []lake.File, err error) {
	if u.options.Parquet == nil {
		return nil, nil
	}
	root, err := layout.OpenDir(u.options.Directory)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing was written through it
	files, err := lake.List(root)
	for _, f := range lake.Closed(files) {
		is, failed := f.IsCommitted(root)
		if err = errors.Join(err, failed); is {
			committed = append(committed, f)
		}
	}
	return committed, err
}

// uploadParquet uploads a Parquet file and removes it from the directory. uploaded is false if another object has its name.
func (u *Uploader) uploadParquet(ctx context.Context, f *lake.File) (uploaded bool, err error) {
	uploaded, err = u.put(ctx, f.Path, f.Size, func() error { return nil })
	if err != nil || !uploaded {
		return false, err
	}
	root, err := layout.OpenDir(u.options.Directory)
	if err != nil {
		return false, err
	}
	defer func() { _ = root.Close() }() // a file that a crash brings back is uploaded again
	if err := lake.Remove(root, f); err != nil {
		return false, err
	}
	u.options.Parquet.Uploaded(f.Path, f.Size)
	return true, nil
}
