// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const (
	attributeServiceName     = "service.name"
	attributeServiceInstance = "service.instance.id"
	attributeExecutableName  = "process.executable.name"

	// unknownService is what OpenTelemetry calls a service without a name.
	unknownService = "unknown_service"

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
	resource := pcommon.NewMap()
	putStrings(resource, s.resourceAttributes)
	putStrings(resource, attributes)
	return resource
}

// putAll sets each attribute of from in to, in order of the keys, so that equal
// attributes make equal resources.
func putAll(to, from pcommon.Map) {
	values := make(map[string]pcommon.Value, from.Len())
	for key, value := range from.All() {
		values[key] = value
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		values[key].CopyTo(to.PutEmpty(key))
	}
}

// putStrings sets each attribute of from in to, in order of the keys.
func putStrings(to pcommon.Map, from map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		to.PutStr(key, from[key])
	}
}

// nameService gives a resource without a service.name one, as OpenTelemetry's
// SDKs do.
func nameService(resource pcommon.Map) {
	if name, ok := resource.Get(attributeServiceName); ok && name.AsString() != "" {
		return
	}
	name := unknownService
	if executable, ok := resource.Get(attributeExecutableName); ok && executable.AsString() != "" {
		name += ":" + executable.AsString()
	}
	resource.PutStr(attributeServiceName, name)
}
