// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
)

// LinkLabels are the names of labels that make a link if the sample lacks the pair of
// labels that a link replaces. They remain attributes. A nil list means the default
// names: those of OpenTelemetry's integrations, Datadog's libraries and Pyroscope's.
type LinkLabels struct {
	// TraceIDs hold 32 lower-case hexadecimal digits.
	TraceIDs []string
	// SpanIDs hold 16 lower-case hexadecimal digits.
	SpanIDs []string
	// DecimalSpanIDs hold a span id as a decimal number.
	DecimalSpanIDs []string
	// DecimalRootSpanIDs hold the span id of the local root, used if no other label
	// names a span.
	DecimalRootSpanIDs []string
}

// DefaultLinkLabels returns the default names.
func DefaultLinkLabels() LinkLabels {
	return LinkLabels{
		TraceIDs:           []string{"trace_id", "otel_traceid", "otel.traceid", "trace id"},
		SpanIDs:            []string{"span_id", "otel_spanid", "otel.spanid", "profile_id"},
		DecimalSpanIDs:     []string{"span id"},
		DecimalRootSpanIDs: []string{"local root span id"},
	}
}

var defaults = DefaultLinkLabels()

// Role is the meaning of a label, beyond being an attribute.
type Role uint8

// The roles.
const (
	Unknown Role = iota // not looked up yet
	None
	Timestamp
	TraceID // a link replaces this pair of labels
	SpanID
	OtherTraceID // these make a link and remain attributes
	OtherSpanID
	DecimalSpanID
	DecimalRootSpanID
)

// Labels are the names of the labels that have a role.
type Labels struct {
	Timestamp, TraceID, SpanID string
	Others                     LinkLabels
}

// NewLabels returns the names, with a default for each that is empty or nil.
func NewLabels(timestamp, traceID, spanID string, others LinkLabels) Labels {
	for _, list := range []struct{ names, defaults *[]string }{
		{&others.TraceIDs, &defaults.TraceIDs},
		{&others.SpanIDs, &defaults.SpanIDs},
		{&others.DecimalSpanIDs, &defaults.DecimalSpanIDs},
		{&others.DecimalRootSpanIDs, &defaults.DecimalRootSpanIDs},
	} {
		if *list.names == nil {
			*list.names = *list.defaults
		}
	}
	return Labels{
		Timestamp: cmp.Or(timestamp, "end_timestamp_ns"),
		TraceID:   cmp.Or(traceID, "trace_id"),
		SpanID:    cmp.Or(spanID, "span_id"),
		Others:    others,
	}
}

// Role returns the role of the label with the given key.
func (l *Labels) Role(key string) Role {
	switch {
	case key == l.Timestamp:
		return Timestamp
	case key == l.TraceID:
		return TraceID
	case key == l.SpanID:
		return SpanID
	case slices.Contains(l.Others.TraceIDs, key):
		return OtherTraceID
	case slices.Contains(l.Others.SpanIDs, key):
		return OtherSpanID
	case slices.Contains(l.Others.DecimalSpanIDs, key):
		return DecimalSpanID
	case slices.Contains(l.Others.DecimalRootSpanIDs, key):
		return DecimalRootSpanID
	}
	return None
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
