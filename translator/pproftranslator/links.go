// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
)

// role is what a label key may mean beside being an attribute.
type role uint8

const (
	roleUnknown role = iota // not looked up yet
	roleNone
	roleTimestamp
	// The pair whose labels a link replaces.
	roleTraceID
	roleSpanID
	// Labels of the field that make a link and stay attributes: ids as hex, and as
	// decimal numbers.
	roleOtherTraceID
	roleOtherSpanID
	roleDecimalSpanID
	roleDecimalRootSpanID
)

// LinkLabels are the names of labels that make a link where the pair that a link
// replaces does not, and that stay attributes beside it. A list that is nil has the
// names known from the field: of OpenTelemetry's integrations, Datadog's libraries
// and Pyroscope's.
type LinkLabels struct {
	// TraceIDs hold 32 lower-case hexadecimal digits.
	TraceIDs []string
	// SpanIDs hold 16 lower-case hexadecimal digits.
	SpanIDs []string
	// DecimalSpanIDs hold a span id as a decimal number.
	DecimalSpanIDs []string
	// DecimalRootSpanIDs hold that of the local root span, which stands in where no
	// other label names a span.
	DecimalRootSpanIDs []string
}

// DefaultLinkLabels returns the names known from the field.
func DefaultLinkLabels() LinkLabels {
	return LinkLabels{
		TraceIDs:           []string{"trace_id", "otel_traceid", "otel.traceid", "trace id"},
		SpanIDs:            []string{"span_id", "otel_spanid", "otel.spanid", "profile_id"},
		DecimalSpanIDs:     []string{"span id"},
		DecimalRootSpanIDs: []string{"local root span id"},
	}
}

var defaultLinkLabels = DefaultLinkLabels()

// labelNames are the label keys that mean more than an attribute.
type labelNames struct {
	timestamp, traceID, spanID string
	others                     LinkLabels
}

func (n *labelNames) role(key []byte) role {
	switch string(key) {
	case n.timestamp:
		return roleTimestamp
	case n.traceID:
		return roleTraceID
	case n.spanID:
		return roleSpanID
	}
	for _, known := range []struct {
		names, defaults []string
		role            role
	}{
		{n.others.TraceIDs, defaultLinkLabels.TraceIDs, roleOtherTraceID},
		{n.others.SpanIDs, defaultLinkLabels.SpanIDs, roleOtherSpanID},
		{n.others.DecimalSpanIDs, defaultLinkLabels.DecimalSpanIDs, roleDecimalSpanID},
		{n.others.DecimalRootSpanIDs, defaultLinkLabels.DecimalRootSpanIDs, roleDecimalRootSpanID},
	} {
		names := known.names
		if names == nil {
			names = known.defaults
		}
		if slices.Contains(names, string(key)) {
			return known.role
		}
	}
	return roleNone
}

// readHex reads lower-case hex digits of exactly len(id) bytes that are not all
// zero.
func readHex(id, digits []byte) bool {
	if len(digits) != hex.EncodedLen(len(id)) {
		return false
	}
	for _, b := range digits {
		if b >= 'A' && b <= 'F' {
			return false
		}
	}
	if _, err := hex.Decode(id, digits); err != nil {
		return false
	}
	for _, b := range id {
		if b != 0 {
			return true
		}
	}
	return false
}

// link gathers the ids that the labels of a sample name. The pair of labels that
// a link replaces goes before any other, a span before its local root.
type link struct {
	traceID, otherTraceID [16]byte
	spanID                [8]byte
	otherSpanID           [8]byte
	rootSpanID            [8]byte
	has                   [roleDecimalRootSpanID + 1]bool
}

// offer looks at a label with a single value: text, or number where text is nil.
func (l *link) offer(r role, text []byte, number int64) {
	if l.has[r] {
		return
	}
	switch r {
	case roleTraceID:
		l.has[r] = readHex(l.traceID[:], text)
	case roleSpanID:
		l.has[r] = readHex(l.spanID[:], text)
	case roleOtherTraceID:
		l.has[r] = readHex(l.otherTraceID[:], text)
	case roleOtherSpanID:
		l.has[r] = readHex(l.otherSpanID[:], text)
	case roleDecimalSpanID, roleDecimalRootSpanID:
		id := uint64(number)
		if text != nil {
			var err error
			if id, err = strconv.ParseUint(string(text), 10, 64); err != nil {
				return
			}
		}
		if id == 0 {
			return
		}
		l.has[r] = true
		if r == roleDecimalRootSpanID {
			binary.BigEndian.PutUint64(l.rootSpanID[:], id)
		} else if !l.has[roleOtherSpanID] {
			binary.BigEndian.PutUint64(l.otherSpanID[:], id)
			l.has[roleOtherSpanID] = true
		}
	}
}

// ids returns the ids of the link, if there is one. replaces tells that the link
// says all that the pair of its labels said.
func (l *link) ids() (traceID [16]byte, spanID [8]byte, replaces, ok bool) {
	if l.has[roleTraceID] && l.has[roleSpanID] {
		return l.traceID, l.spanID, true, true
	}
	switch {
	case l.has[roleTraceID]:
		traceID = l.traceID
	case l.has[roleOtherTraceID]:
		traceID = l.otherTraceID
	default:
		return traceID, spanID, false, false
	}
	switch {
	case l.has[roleSpanID]:
		spanID = l.spanID
	case l.has[roleOtherSpanID]:
		spanID = l.otherSpanID
	case l.has[roleDecimalRootSpanID]:
		spanID = l.rootSpanID
	default:
		return traceID, spanID, false, false
	}
	return traceID, spanID, false, true
}
