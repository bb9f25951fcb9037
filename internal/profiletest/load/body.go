// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"fmt"

	"github.com/google/pprof/profile"
)

// Body is a profile that can be sent any number of times: it has no time of its own, so that receivers
// give it another one each time, and do not treat it as a duplicate.
type Body struct {
	data []byte // gzipped
}

// NewBody returns a Body for a pprof profile, gzipped or not.
func NewBody(data []byte) (Body, error) {
	p, err := profile.ParseData(data)
	if err != nil {
		return Body{}, fmt.Errorf("pprof: %w", err)
	}
	p.TimeNanos = 0
	var gzipped bytes.Buffer
	err = p.Write(&gzipped)
	return Body{gzipped.Bytes()}, err
}
