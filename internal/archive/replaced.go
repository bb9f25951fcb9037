// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/regularfile"
)

// A manifest is a hidden file beside a file that replaces others: their names, one a line, and a last line that shows that
// none is missing. The others do not count from the time on at which the file has its name, whether they were removed or not.
const (
	manifestSuffix = ".replaces"
	manifestEnd    = "end"
	// MaxManifest is the size of a manifest in bytes: of 300,000 names.
	MaxManifest = 16 << 20
)

// ManifestName returns the name of the manifest of a file.
func ManifestName(name string) string { return "." + name + manifestSuffix }

// ManifestOf returns the name of the file that a manifest belongs to. ok is false for the names of other files.
func ManifestOf(manifest string) (name string, ok bool) {
	name, ok = strings.CutSuffix(strings.TrimPrefix(manifest, "."), manifestSuffix)
	return name, ok && manifest == ManifestName(name)
}

// Manifest returns the content of a manifest.
func Manifest(replaced []string) []byte {
	return []byte(strings.Join(append(replaced[:len(replaced):len(replaced)], manifestEnd), "\n") + "\n")
}

// ParseManifest returns the names in the manifest of a file, nil if it is incomplete. Names that are not those of other closed
// files of the directory are left out.
func ParseManifest(of string, content []byte) (replaced []string) {
	text, complete := strings.CutSuffix(string(content), manifestEnd+"\n")
	if !complete {
		return nil
	}
	for name := range strings.FieldsSeq(text) {
		if parsed, ours := recordfile.ParseName(name); ours && !parsed.Partial && name != of {
			replaced = append(replaced, name)
		}
	}
	return replaced
}

// withoutReplaced leaves out the files of the operating system that others replace.
func withoutReplaced(files []File) []File {
	replaced := map[string]bool{}
	for _, f := range files {
		directory, name := filepath.Split(f.Path)
		if parsed, ok := recordfile.ParseName(name); ok && parsed.Span > 0 {
			manifest, _ := regularfile.Read(directory+ManifestName(name), MaxManifest) // a missing one replaces nothing
			for _, other := range ParseManifest(name, manifest) {
				replaced[directory+other] = true
			}
		}
	}
	return slices.DeleteFunc(files, func(f File) bool { return replaced[f.Path] })
}
