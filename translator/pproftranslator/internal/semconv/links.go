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
	ids [DecimalRootSpanID + 1][16]byte // a span id takes the first 8 bytes
	has [DecimalRootSpanID + 1]bool
}

// Add adds a label with a single value, a number or a text.
func (l *Link) Add(r Role, isNumber bool, text []byte, number int64) {
	isDecimal := r >= DecimalSpanID
	if r == DecimalSpanID {
		r = OtherSpanID // whichever comes first
	}
	if r < TraceID || l.has[r] {
		return
	}
	if !isDecimal {
		size := 8
		if r == TraceID || r == OtherTraceID {
			size = 16
		}
		l.has[r] = readHex(l.ids[r][:size], text)
		return
	}
	id := uint64(number)
	if !isNumber {
		var err error
		if id, err = strconv.ParseUint(string(text), 10, 64); err != nil {
			return
		}
	}
	binary.BigEndian.PutUint64(l.ids[r][:], id)
	l.has[r] = id != 0
}

// IDs returns the ids of the link, if the labels make one: both ids of the pair that a
// link replaces go before any other, a span before its local root. replaces reports
// that the link says everything that the pair said.
func (l *Link) IDs() (traceID [16]byte, spanID [8]byte, replaces, ok bool) {
	trace, hasTrace := l.first(TraceID, OtherTraceID)
	span, hasSpan := l.first(SpanID, OtherSpanID, DecimalRootSpanID)
	if !hasTrace || !hasSpan {
		return traceID, spanID, false, false
	}
	return l.ids[trace], [8]byte(l.ids[span][:8]), trace == TraceID && span == SpanID, true
}

func (l *Link) first(roles ...Role) (Role, bool) {
	for _, r := range roles {
		if l.has[r] {
			return r, true
		}
	}
	return None, false
}

// readHex reads exactly 2*len(id) lower-case hexadecimal digits that are not all zero.
func readHex(id, digits []byte) bool {
	if len(digits) != 2*len(id) || bytes.ContainsAny(digits, "ABCDEF") {
		return false
	}
	_, err := hex.Decode(id, digits)
	return err == nil && len(bytes.Trim(id, "\x00")) > 0
}
