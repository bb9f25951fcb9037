// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"bytes"
	"fmt"

	"github.com/google/pprof/profile"
)

// MaxLegacySize is the largest profile that ConvertLegacy reads, in bytes.
const MaxLegacySize = 8 << 20

// legacyWork is about how many bytes google/pprof takes for each byte of a profile in a format from
// before protobuf, if each is of another location.
const legacyWork = 64

// LegacyMemory is about how many bytes of memory it takes to convert a profile in a format from before protobuf, and to
// translate it then.
func LegacyMemory(data []byte) int64 { return legacyWork * int64(len(data)) }

// ConvertLegacy returns a profile in a format from before protobuf as a message.
func ConvertLegacy(data []byte) ([]byte, error) {
	if len(data) > MaxLegacySize {
		return nil, &LimitError{What: "size in bytes of a profile in a format from before protobuf", Limit: MaxLegacySize, Got: int64(len(data))}
	}
	p, err := profile.ParseData(data)
	if err != nil {
		return nil, fmt.Errorf("pprof from before protobuf: %w", err)
	}
	var message bytes.Buffer
	if err := WritePprof(&message, p); err != nil {
		return nil, err
	}
	return message.Bytes(), nil
}
