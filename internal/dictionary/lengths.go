// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import "go.opentelemetry.io/collector/pdata/pprofile"

// Lengths are numbers of entries by table.
type Lengths struct {
	Strings, Mappings, Locations, Functions, Links, Attributes, Stacks int
}

// LengthsOf returns the lengths of the tables of d.
func LengthsOf(d pprofile.ProfilesDictionary) Lengths {
	return Lengths{
		Strings: d.StringTable().Len(), Mappings: d.MappingTable().Len(), Locations: d.LocationTable().Len(),
		Functions: d.FunctionTable().Len(), Links: d.LinkTable().Len(), Attributes: d.AttributeTable().Len(),
		Stacks: d.StackTable().Len(),
	}
}
