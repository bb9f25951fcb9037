// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"io"
	"io/fs"
)

// maxIndexes bounds the memory in bytes for the indexes of all open files of a Writer. Anything that does not
// fit is left out: first the lines of records, then the index.
const maxIndexes = 16 << 20

// writeIndex writes the index of a file that has its final name.
func (f *partialFile) writeIndex() error {
	data, err := f.index.Encode(f.Size)
	if data == nil {
		return err
	}
	name := f.name.String() + IndexSuffix
	file, err := f.dir.Create(name)
	if err != nil {
		return &fs.PathError{Op: "create", Path: f.Path + IndexSuffix, Err: err}
	}
	n, err := file.WriteAt(data, 0)
	if err == nil && n != len(data) {
		err = io.ErrShortWrite
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = f.dir.Remove(name) // if it fails, readers reject the index by its checksum
		return &fs.PathError{Op: "write", Path: f.Path + IndexSuffix, Err: err}
	}
	return nil
}
