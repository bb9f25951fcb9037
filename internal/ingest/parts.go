// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"io"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/translator/gotracetranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/perfscripttranslator"
)

// Parts are those of a file that is translated part by part, so that it takes the memory of one at a time: the chunks of a
// recording, the slices of an execution trace, or the parts of the output of perf script. One of the readers is not nil.
type Parts struct {
	chunks *jfrtranslator.Reader
	slices *gotracetranslator.Reader
	script *perfscripttranslator.Reader
	size   int64 // of the file in bytes
}

// Parts returns the parts of a file, which was changed last at the given time. It returns nil if the file has another format.
func (in *Ingester) Parts(from io.ReaderAt, size int64, modified time.Time) *Parts {
	head := make([]byte, 4096)
	n, _ := from.ReadAt(head, 0)
	switch head = head[:n]; {
	case jfrtranslator.IsRecording(head):
		u := in.unmarshaler()
		return &Parts{chunks: u.NewReader(from, size), size: size}
	case gotracetranslator.IsTrace(head):
		u := gotracetranslator.Unmarshaler{End: modified}
		return &Parts{slices: u.NewReader(from, size), size: size}
	case perfscripttranslator.IsScript(head):
		u := perfscripttranslator.Unmarshaler{End: uint64(max(modified.UnixNano(), 0))}
		return &Parts{script: u.NewReader(from, size), size: size}
	}
	return nil
}

// MayGrow reports whether a program may still write the file: traces and texts do not show their end.
func (p *Parts) MayGrow() bool { return p.chunks == nil || p.chunks.Unfinished() }
