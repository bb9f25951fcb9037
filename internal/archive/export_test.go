// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

// DecodedSize is the estimate that bounds the memory of a record.
func DecodedSize(r *Record) int64 {
	size, _ := r.decodedSize()
	return size
}
