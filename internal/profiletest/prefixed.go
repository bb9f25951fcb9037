// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import "encoding/binary"

// Prefixed returns the bytes of an uncompressed file of messages.
func Prefixed(records ...[]byte) []byte {
	var file []byte
	for _, record := range records {
		file = append(binary.BigEndian.AppendUint32(file, uint32(len(record))), record...)
	}
	return file
}
