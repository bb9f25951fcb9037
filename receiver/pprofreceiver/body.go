// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"io"
)

// smallestBuffer is what the first read of a body has room for, in bytes. It is
// all that a client holds which has not sent more.
const smallestBuffer = 4 << 10

// readBody reads a body to its end. expected is its length in bytes, or
// negative when unknown. What it holds is taken from the reservation before it
// is allocated, and grows with what has arrived, not with what was announced:
// a client that sends nothing holds next to nothing.
func readBody(ctx context.Context, body io.Reader, expected int64, held *reservation) ([]byte, error) {
	var buf []byte
	for {
		if len(buf) == cap(buf) {
			size := max(2*int64(cap(buf)), smallestBuffer)
			// One byte more than expected, so that the end is seen without
			// growing again.
			if expected >= int64(len(buf)) {
				size = min(size, expected+1)
			}
			if err := held.resize(ctx, size); err != nil {
				return nil, err
			}
			buf = append(make([]byte, 0, size), buf...)
		}
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
