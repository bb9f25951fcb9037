// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"encoding/binary"
	"encoding/hex"
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

// labelNames are the label keys that mean more than an attribute.
type labelNames struct{ timestamp, traceID, spanID string }

// otherRoles are the keys known from the field: OpenTelemetry integrations,
// Datadog's libraries, Pyroscope's.
var otherRoles = map[string]role{
	"trace_id":           roleOtherTraceID,
	"span_id":            roleOtherSpanID,
	"otel_traceid":       roleOtherTraceID,
	"otel.traceid":       roleOtherTraceID,
	"trace id":           roleOtherTraceID,
	"otel_spanid":        roleOtherSpanID,
	"otel.spanid":        roleOtherSpanID,
	"profile_id":         roleOtherSpanID,
	"span id":            roleDecimalSpanID,
	"local root span id": roleDecimalRootSpanID,
}

func (n labelNames) role(key []byte) role {
	switch string(key) {
	case n.timestamp:
		return roleTimestamp
	case n.traceID:
		return roleTraceID
	case n.spanID:
		return roleSpanID
	}
	if r := otherRoles[string(key)]; r != roleUnknown {
		return r
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
