// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Attribute is a key and a value with a unit, written out.
type Attribute struct {
	Key string
	// Value is one of nil, string, bool, int64, float64, []byte, []any of these,
	// and [KeyValues].
	Value any
	// Unit is empty where there is none.
	Unit string
}

// KeyValue is one pair of a list of pairs.
type KeyValue struct {
	Key   string
	Value any
}

// KeyValues is a list of pairs, whose order does not count.
type KeyValues []KeyValue

// String writes the attribute out so that two are the same exactly if they are
// equal by the identity rules of the format.
func (a Attribute) String() string {
	return fmt.Sprintf("%q=%s %q", a.Key, text(a.Value), a.Unit)
}

func text(v any) string {
	switch v := v.(type) {
	case float64:
		if v == 0 {
			v = 0 // not -0
		}
		return fmt.Sprintf("double(%v %#x)", v, math.Float64bits(v)) // NaNs differ
	case []any:
		parts := []string{}
		for _, e := range v {
			parts = append(parts, text(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case KeyValues:
		parts := []string{}
		for _, kv := range v {
			parts = append(parts, strconv.Quote(kv.Key)+"="+text(kv.Value))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		return fmt.Sprintf("%T(%#v)", v, v)
	}
}

// AttributeSet sorts attributes and drops repetitions: they are a set.
func AttributeSet(attributes []Attribute) []Attribute {
	set := slices.Clone(attributes)
	slices.SortFunc(set, func(a, b Attribute) int { return strings.Compare(a.String(), b.String()) })
	return slices.CompactFunc(set, func(a, b Attribute) bool { return a.String() == b.String() })
}

// Value is that of the attribute with this key, nil if there is none.
func Value(attributes []Attribute, key string) any {
	for _, a := range attributes {
		if a.Key == key {
			return a.Value
		}
	}
	return nil
}

// Text is Value for strings, "" if it is none.
func Text(attributes []Attribute, key string) string {
	text, _ := Value(attributes, key).(string)
	return text
}
