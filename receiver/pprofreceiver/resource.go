// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"maps"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

const (
	attributeServiceName    = "service.name"
	attributeExecutableName = "process.executable.name"

	// unknownService is what OpenTelemetry calls a service without a name.
	unknownService = "unknown_service"
)

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

// putStrings sets each attribute of from in to.
func putStrings(to pcommon.Map, from map[string]string) {
	for key, value := range from {
		to.PutStr(key, value)
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
