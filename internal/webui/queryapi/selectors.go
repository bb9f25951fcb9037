// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"encoding/hex"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/queryapi/querierpb"
)

// selecting is a request that may select profiles and traces by their IDs.
type selecting interface {
	GetStackTraceSelector() *querierpb.StackTraceSelector
	GetProfileIdSelector() []string
	GetTraceIdSelector() []string
}

// addSelectors adds the selectors of a request to its selection.
func addSelectors(sel *query.Selection, r selecting) error {
	if err := refuseStacks(r); err != nil {
		return err
	}
	for _, text := range r.GetProfileIdSelector() {
		if err := sel.AddProfileID(text); err != nil {
			return invalid("profile_id_selector has %.60q: %w", text, err)
		}
	}
	for _, text := range r.GetTraceIdSelector() {
		var id pcommon.TraceID
		if !decodeID(text, id[:]) {
			return invalid("trace_id_selector has %.60q: must be 32 hex digits", text)
		}
		sel.TraceIDs = append(sel.TraceIDs, id)
	}
	return nil
}

// refuseStacks returns an error if only some stacks are selected: an answer with all would be wrong.
func refuseStacks(r interface {
	GetStackTraceSelector() *querierpb.StackTraceSelector
}) error {
	if s := r.GetStackTraceSelector(); len(s.GetCallSite()) > 0 || s.GetGoPgo() != nil {
		return invalid("stack_trace_selector is not supported: leave it out")
	}
	return nil
}

// addSpans adds the spans that a request selects. Pyroscope does not select by spans and traces at once.
func addSpans(sel *query.Selection, texts []string) error {
	if len(texts) > 0 && len(sel.TraceIDs) > 0 {
		return invalid("span_selector and trace_id_selector must not both be set")
	}
	for _, text := range texts {
		var id pcommon.SpanID
		if !decodeID(text, id[:]) {
			return invalid("span_selector has %.60q: must be 16 hex digits", text)
		}
		sel.SpanIDs = append(sel.SpanIDs, id)
	}
	return nil
}

// decodeID reads an ID of hex digits, and returns whether the text is one.
func decodeID(text string, id []byte) bool {
	decoded, err := hex.DecodeString(text)
	return err == nil && copy(id, decoded) == len(id) && len(decoded) == len(id)
}
