// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"fmt"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const (
	// maxAttributes is how many attributes a request may set, or parameters its
	// query may have.
	maxAttributes = 256

	// maxAttributeLength bounds a name or a value that a request sets, in bytes.
	maxAttributeLength = 64 << 10

	// maxDescription bounds what a request says of its profiles, in bytes, counted
	// once for each profile that it is put on.
	maxDescription = 16 << 20
)

// tooManyAttributes tells that a request has more of what than maxAttributes.
func tooManyAttributes(what string, got int) error {
	if got <= maxAttributes {
		return nil
	}
	return &pproftranslator.LimitError{What: what, Limit: maxAttributes, Got: int64(got)}
}

// tooLongAttribute tells that a name or a value is longer than maxAttributeLength.
func tooLongAttribute[T string | []byte](where string, name, value T) error {
	if len(name) > maxAttributeLength {
		return &pproftranslator.LimitError{What: where + ": size in bytes of a name", Limit: maxAttributeLength, Got: int64(len(name))}
	}
	if len(value) > maxAttributeLength {
		return &pproftranslator.LimitError{What: fmt.Sprintf("%s: size in bytes of %q", where, string(name)), Limit: maxAttributeLength, Got: int64(len(value))}
	}
	return nil
}

// setAttribute sets an attribute that a request names, which must not be there yet.
func setAttribute(attributes map[string]string, where, name, value string) error {
	if err := tooLongAttribute(where, name, value); err != nil {
		return err
	}
	switch _, twice := attributes[name]; {
	case name == "":
		return badRequest(where + ": a name is empty")
	case !utf8.ValidString(name) || !utf8.ValidString(value):
		return badRequest(fmt.Sprintf("%s: %q is not valid UTF-8", where, name))
	case twice:
		return badRequest(fmt.Sprintf("%s: %q is there twice", where, name))
	}
	attributes[name] = value
	return nil
}

// resourceOf makes the attributes of a resource from those of the configuration and
// those of a request, which win.
func (s *server) resourceOf(attributes map[string]string) pcommon.Map {
	return ingest.NewResource(s.resourceAttributes, attributes)
}
