// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package labels selects profiles by labels, which are attributes of resources, Profiles and samples.
//
// A label has the name of its attribute, in which an underscore stands for any character that a name in
// Prometheus cannot have: service_name and service.name are the same label. Its value is that of the sample or, if that
// does not have it, of the Profile, or else of the resource. Strings, numbers and bools are values, as text.
// A label that is missing has the value "".
//
// A [Matcher] selects values; [ParseSelector] reads several, such as {service_name="checkout", pod=~"a|b"}. A [Set] has
// the labels of many profiles.
package labels

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Name returns the name of an attribute as Prometheus and Pyroscope have it.
func Name(key string) string {
	name := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, key)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return "_" + name
	}
	return name
}

// Is reports whether the attribute with a key is the label with a name.
func Is(key, name string) bool { return key == name || Name(key) == name }

// Text returns the value of a label. ok is false if v cannot be one.
func Text(v pcommon.Value) (text string, ok bool) {
	switch v.Type() {
	case pcommon.ValueTypeStr, pcommon.ValueTypeInt, pcommon.ValueTypeDouble, pcommon.ValueTypeBool:
		return v.AsString(), true
	default:
		return "", false
	}
}

// Find returns the value of a label among the attributes of a resource.
func Find(attributes pcommon.Map, name string) string {
	if v, found := attributes.Get(name); found {
		text, _ := Text(v)
		return text
	}
	for key, v := range attributes.All() {
		if Is(key, name) {
			text, _ := Text(v)
			return text
		}
	}
	return ""
}
