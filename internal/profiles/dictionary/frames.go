// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"cmp"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// FrameNames returns the names of the functions of a location, the innermost first: one for each of its lines. Without a line, it is the
// file of the mapping and the address. All indices of dict are valid.
func FrameNames(dict pprofile.ProfilesDictionary, location int32) (names []string) {
	text := func(i int32) string { return ValidString(dict.StringTable(), i) }
	l := dict.LocationTable().At(int(location))
	for _, line := range l.Lines().All() {
		function := dict.FunctionTable().At(int(line.FunctionIndex()))
		names = append(names, cmp.Or(sampletypes.FunctionName(text(function.NameStrindex()), text(function.SystemNameStrindex())), text(function.FilenameStrindex()), "?"))
	}
	if len(names) > 0 {
		return names
	}
	file := ""
	if i := int(l.MappingIndex()); i > 0 && i < dict.MappingTable().Len() {
		file = text(dict.MappingTable().At(i).FilenameStrindex())
	}
	return []string{sampletypes.AddressName(file, l.Address())}
}
