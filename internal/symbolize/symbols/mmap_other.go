// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package symbols

import (
	"io"
	"os"
)

// mapFile reads the file: it is in memory here.
func mapFile(f *os.File, size int) ([]byte, error) {
	data := make([]byte, size)
	_, err := io.ReadFull(io.NewSectionReader(f, 0, int64(size)), data)
	return data, err
}

func unmapFile([]byte) error { return nil }
