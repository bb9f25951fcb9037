// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"regexp"
	"strings"
)

// maxUnit is the longest unit that isUCUM reads, in bytes.
const maxUnit = 64

// Terms of the Unified Code for Units of Measure (https://ucum.org/ucum), case sensitive: units that take a metric
// prefix, units that take none, numbers, and annotations such as {request}, which may follow any of them.
var term = regexp.MustCompile(`^(?:` +
	`(?:[YZEPTGMkhdcmunpfazy]|da|Ki|Mi|Gi|Ti)?(?:By|bit|Bd|s|m|g|Hz|J|W|V|A|K|N|Pa|Cel|Ohm|F|C|L|l|mol|cd|eV|cal|B)` +
	`|min|h|d|wk|mo|a|%|10\*-?[0-9]+|[1-9][0-9]*` +
	`)?(?:-?[0-9]+)?(?:\{[!-z|~]*\})?$`)

// isUCUM reports whether unit is one of UCUM, as attributes of OpenTelemetry have it. A missing unit is one.
func isUCUM(unit string) bool {
	if unit == "" {
		return true
	}
	if len(unit) > maxUnit {
		return false
	}
	for t := range strings.FieldsFuncSeq(unit, func(r rune) bool { return r == '.' || r == '/' }) {
		if !term.MatchString(t) {
			return false
		}
	}
	return strings.Trim(unit, "./") != ""
}
