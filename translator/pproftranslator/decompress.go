// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"

	"github.com/otelcol-profiles/otelcol-profiles/internal/gunzip"
)

// Decompress returns buf itself if it does not begin as gzip, and otherwise what
// all its gzip members hold, in memory of its own. Past limit bytes it stops
// with a *LimitError.
func Decompress(buf []byte, limit int) ([]byte, error) {
	if !gunzip.Is(buf) {
		if len(buf) > limit {
			return nil, &LimitError{What: "size in bytes", Limit: int64(limit), Got: int64(len(buf))}
		}
		return buf, nil
	}
	plain, err := gunzip.Decompress(buf, limit, func(int64) error { return nil })
	if errors.Is(err, gunzip.ErrLimit) {
		return nil, &LimitError{What: "decompressed size in bytes", Limit: int64(limit)}
	}
	return plain, err
}
