// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"regexp"
	"slices"
	"strings"
)

// sameCode brings a frame into the form that all frames of the same code have, wherever the code was loaded: if the frame
// is in a mapping that names its code, the mapping starts at 0 with a whole number of pages, the address is the distance from
// the start plus 1, and an attribute marks the mapping. A frame without an address stays without. All other frames stay.
func sameCode(f Frame) Frame {
	m := &f.Mapping
	hasBuildID := slices.ContainsFunc(m.Attributes, func(a Attribute) bool {
		isKey := a.Key == keyBuildIDGNU || a.Key == keyBuildIDGo || a.Key == keyBuildIDHTLHash
		return isKey && Text([]Attribute{a}, a.Key) != ""
	})
	noAddresses := m.Start == 0 && m.Limit == 0
	if !noAddresses && (m.Start >= m.Limit || m.Limit >= 1<<64-0x1000) {
		return f
	}
	inside := noAddresses && f.Address < 1<<64-1 || m.Start <= f.Address && f.Address < m.Limit
	switch {
	case !hasBuildID && (!isProgram(m.File) || len(f.Lines) == 0):
		return f
	case f.Address == 0:
	case inside:
		f.Address += 1 - m.Start
	default:
		return f
	}
	if size := m.Limit - m.Start; size%0x1000 > 0 {
		m.Limit += 0x1000 - size%0x1000
	}
	m.Limit -= m.Start
	m.Start = 0
	if hasBuildID {
		m.File = ""
	}
	m.Attributes = append(slices.Clone(m.Attributes), Attribute{Key: "~same code", Value: true})
	return f
}

var perfMap = regexp.MustCompile(`^perf-\d+\.map$`)

func isProgram(file string) bool {
	notFiles := []string{"//", "/dev/", "/memfd:", "/SYSV"}
	return strings.HasPrefix(file, "/") &&
		!slices.ContainsFunc(notFiles, func(prefix string) bool { return strings.HasPrefix(file, prefix) }) &&
		!perfMap.MatchString(file[strings.LastIndex(file, "/")+1:]) &&
		!strings.HasSuffix(file, " (deleted)")
}
