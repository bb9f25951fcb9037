// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
)

// hashedBytes is how much FileHash reads of each end of a file.
const hashedBytes = 4096

// FileHash returns the build ID that process.executable.build_id.htlhash is of an executable with size bytes: the first half of
// SHA-256 of its head, its tail and its length. Head and tail of a short file are the whole of it.
func FileHash(file io.ReaderAt, size int64) (string, error) {
	hash, part := sha256.New(), min(size, hashedBytes)
	for _, at := range []int64{0, size - part} {
		if n, err := io.Copy(hash, io.NewSectionReader(file, at, part)); err != nil || n < part {
			if err == nil {
				err = io.ErrUnexpectedEOF // it has been cut since
			}
			return "", err
		}
	}
	hash.Write(binary.BigEndian.AppendUint64(nil, uint64(size)))
	return hex.EncodeToString(hash.Sum(nil)[:sha256.Size/2]), nil
}
