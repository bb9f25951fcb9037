// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"sort"
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
	s := strconv.Quote(a.Key) + "=" + renderValue(a.Value)
	if a.Unit != "" {
		s += " " + strconv.Quote(a.Unit)
	}
	return s
}

func renderValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "empty"
	case string:
		return strconv.Quote(v)
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		if v == 0 {
			return "double(0)"
		}
		if math.IsNaN(v) {
			return fmt.Sprintf("double(NaN %#x)", math.Float64bits(v))
		}
		return "double(" + strconv.FormatFloat(v, 'g', -1, 64) + ")"
	case []byte:
		return "bytes(" + hex.EncodeToString(v) + ")"
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = renderValue(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case KeyValues:
		parts := make([]string, len(v))
		for i, kv := range v {
			parts[i] = strconv.Quote(kv.Key) + "=" + renderValue(kv.Value)
		}
		sort.Strings(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		panic(fmt.Sprintf("expand: an attribute value cannot be a %T", v))
	}
}

// AttributeSet sorts attributes and drops repetitions: they are a set.
func AttributeSet(attributes []Attribute) []Attribute {
	set := slices.Clone(attributes)
	slices.SortFunc(set, func(a, b Attribute) int { return strings.Compare(a.String(), b.String()) })
	return slices.CompactFunc(set, func(a, b Attribute) bool { return a.String() == b.String() })
}

func renderAttributes(attributes []Attribute) string {
	parts := make([]string, len(attributes))
	for i, a := range attributes {
		parts[i] = a.String()
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
