// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"io"
	"os"

	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// StoredIndex returns the index beside a file, or nil if there is none that describes the file.
func (o *Options) StoredIndex(file File) *recordfile.Index {
	if !file.Index {
		return nil
	}
	data, err := o.readIndex(file.Path + recordfile.IndexSuffix)
	if err != nil {
		return nil
	}
	x, err := recordfile.ParseIndex(data, file.Size, o.maxDecoded())
	if err != nil {
		return nil
	}
	return x
}

func (o *Options) readIndex(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > o.maxRecord() {
		return nil, errors.New("the index takes more memory than the limit allows")
	}
	data := make([]byte, info.Size())
	_, err = io.ReadFull(f, data)
	return data, err
}
