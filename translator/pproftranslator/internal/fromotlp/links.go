// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package fromotlp

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

// Role is the meaning of a label, beyond being an attribute.
type Role uint8

// The roles.
const (
	None Role = iota
	Timestamp
	TraceID // a link replaces this pair of labels
	SpanID
	OtherTraceID // these make a link and remain attributes
	OtherSpanID
	DecimalSpanID
	DecimalRootSpanID // the span of the local root, used if no other label names a span
)

// others are labels that make a link if the sample lacks the pair of labels that a link replaces: those of
// OpenTelemetry's integrations, Datadog's libraries and Pyroscope's. They remain attributes.
var others = map[string]Role{
	"trace_id": OtherTraceID, "otel_traceid": OtherTraceID, "otel.traceid": OtherTraceID, "trace id": OtherTraceID,
	"span_id": OtherSpanID, "otel_spanid": OtherSpanID, "otel.spanid": OtherSpanID, "profile_id": OtherSpanID,
	"span id": DecimalSpanID, "local root span id": DecimalRootSpanID,
}

// IsLinkLabel reports whether a label of this name may make a link.
func IsLinkLabel(key string) bool { return others[key] != None }

// Labels are the names of the labels that have a role.
type Labels struct{ Timestamp, TraceID, SpanID string }

// NewLabels returns the names, with a default for each that is empty.
func NewLabels(timestamp, traceID, spanID string) Labels {
	return Labels{cmp.Or(timestamp, "end_timestamp_ns"), cmp.Or(traceID, "trace_id"), cmp.Or(spanID, "span_id")}
}

// Role returns the role of the label with the given key.
func (l *Labels) Role(key string) Role {
	switch key {
	case l.Timestamp:
		return Timestamp
	case l.TraceID:
		return TraceID
	case l.SpanID:
		return SpanID
	}
	return others[key]
}

// Link collects the ids in the labels of a sample. The first valid id of a role counts.
type Link struct {
	ids [DecimalRootSpanID + 1][16]byte // a span id takes the first 8 bytes; zero is none
}

// Add adds a label with a single value, a number or a text.
func (l *Link) Add(r Role, isNumber bool, text []byte, number int64) {
	var id [16]byte
	switch r {
	case TraceID, OtherTraceID:
		id = readHex(text, 16)
	case SpanID, OtherSpanID:
		id = readHex(text, 8)
	case DecimalSpanID, DecimalRootSpanID:
		if !isNumber {
			n, err := strconv.ParseUint(string(text), 10, 64)
			if err != nil {
				return
			}
			number = int64(n)
		}
		binary.BigEndian.PutUint64(id[:], uint64(number))
	default:
		return
	}
	if r == DecimalSpanID {
		r = OtherSpanID // the first of both
	}
	if l.ids[r] == [16]byte{} {
		l.ids[r] = id
	}
}

// IDs returns the ids of the link, if the labels make one: both ids of the pair that a
// link replaces go before any other, a span before its local root. replaces reports
// that the link says everything that the pair said.
func (l *Link) IDs() (traceID [16]byte, spanID [8]byte, replaces, ok bool) {
	var none [16]byte
	traceID = cmp.Or(l.ids[TraceID], l.ids[OtherTraceID])
	span := cmp.Or(l.ids[SpanID], l.ids[OtherSpanID], l.ids[DecimalRootSpanID])
	if traceID == none || span == none {
		return none, spanID, false, false
	}
	return traceID, [8]byte(span[:8]), l.ids[TraceID] != none && l.ids[SpanID] != none, true
}

// readHex reads an id of exactly size bytes as lower-case hexadecimal digits. It is zero if they are something else.
func readHex(digits []byte, size int) (id [16]byte) {
	if len(digits) == 2*size && !bytes.ContainsAny(digits, "ABCDEF") {
		if _, err := hex.Decode(id[:], digits); err != nil {
			return [16]byte{}
		}
	}
	return id
}
