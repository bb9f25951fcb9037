// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"
)

// suggestion names the key of a section that an unknown one was meant to be: the nearest of
// its keys, or the same key of a section in it. It is empty if there is none.
func suggestion(unknown string, keys map[string]reflect.Type) string {
	nearest, least := "", max(2, len(unknown)/3)+1 // too far
	var nested []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		distance := editDistance(unknown, key)
		if strings.HasPrefix(key, unknown) || strings.Contains("_"+key+"_", "_"+unknown+"_") {
			distance = 1
		}
		if distance < least {
			nearest, least = key, distance
		}
		if section, _ := underlying(keys[key]); section.Kind() == reflect.Struct && keysOf(section)[unknown] != nil {
			nested = append(nested, key+confmap.KeyDelimiter+unknown)
		}
	}
	switch {
	case least > 1 && len(nested) > 0:
		nearest = strings.Join(nested, " or ")
	case nearest == "":
		return ""
	}
	return ", did you mean " + nearest + "?"
}

// editDistance is the least number of characters to insert, delete or replace to turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
