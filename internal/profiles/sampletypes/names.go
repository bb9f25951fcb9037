// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sampletypes

import (
	"cmp"
	"fmt"
	"path"
	"strings"
)

// SeriesName returns the name that the clients of Pyroscope give to profiles, of which each argument may be missing.
func SeriesName(profileType, periodType, sampleType string) string {
	switch name := cmp.Or(profileType, periodType, sampleType); name {
	case "cpu":
		return "process_cpu"
	case "heap", "allocs", "alloc", "live", "space":
		return "memory"
	case "goroutine", "goroutines":
		return "goroutines"
	default:
		return name
	}
}

// PyroscopeName replaces what Pyroscope rejects in sample types, and what separates the parts of its profile type IDs.
func PyroscopeName(name string) string { return typeNames.Replace(name) }

var typeNames = strings.NewReplacer("-", "_", ":", "_")

// AddressName names a location without a function: by the file of its mapping, which may be unknown, and its address.
func AddressName(file string, address uint64) string {
	switch {
	case file != "":
		return fmt.Sprintf("[%s] 0x%x", path.Base(file), address)
	case address == 0:
		return "[unknown]"
	}
	return fmt.Sprintf("0x%x", address)
}
