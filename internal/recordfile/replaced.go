// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/regularfile"
)

// A manifest is a hidden file beside a file that replaces others: their names, one a line, and a last line with the CRC-32C of
// these lines. The others do not count from the time on at which the file has its name, whether they were removed or not.
// The manifest stays as long as its file, so that a missing one is noticed.
const (
	manifestEnd = "end "
	// MaxReplaced is how many files one file may replace.
	MaxReplaced = 10_000
	// MaxManifest is the size of a manifest in bytes: of MaxReplaced names.
	MaxManifest = 1 << 20
)

// ManifestOf returns the name of the file that a manifest belongs to. ok is false for the names of other files.
func ManifestOf(manifest string) (name string, ok bool) {
	name, ok = strings.CutSuffix(strings.TrimPrefix(manifest, "."), ManifestSuffix)
	return name, ok && manifest == ManifestName(name)
}

// Manifest returns the content of a manifest.
func Manifest(replaced []string) []byte {
	var content []byte
	for _, name := range replaced {
		content = append(append(content, name...), '\n')
	}
	return fmt.Appendf(content, "%s%d\n", manifestEnd, crc32.Checksum(content, castagnoli))
}

var errDamagedManifest = errors.New("is damaged")

// ParseManifest returns the names in the manifest of a file. Names that are not those of other closed files of the directory are left
// out.
func ParseManifest(of string, content []byte) (replaced []string, err error) {
	at := strings.LastIndex(string(content), manifestEnd)
	if at < 0 || string(content[at:]) != fmt.Sprintf("%s%d\n", manifestEnd, crc32.Checksum(content[:at], castagnoli)) {
		return nil, errDamagedManifest
	}
	for name := range strings.FieldsSeq(string(content[:at])) {
		if parsed, ours := ParseName(name); ours && !parsed.Partial && name != of {
			replaced = append(replaced, name)
		}
	}
	return replaced, nil
}

// ManifestError says that it is not known which files a file replaces.
type ManifestError struct {
	File string
	// Inputs are the files of its time, which it may replace.
	Inputs []string
	Err    error
}

func (e *ManifestError) Error() string {
	return fmt.Sprintf("%s: the list of the files that it replaces %v; it may count twice, as do files of its time such as %s (%d in all)",
		e.File, e.Err, filepath.Base(e.Inputs[0]), len(e.Inputs))
}

func (e *ManifestError) Unwrap() error { return e.Err }

// compacted is a file that replaces others, of its time.
type compacted struct {
	path string
	name Name
}

// Replaced returns the files among paths that others among them replace, each with the one that replaces it. read returns the manifest
// of a file. It is called only for files of whose time there are others. An error is a *ManifestError.
func Replaced(paths []string, read func(path string) ([]byte, error)) (by map[string]string, failed []*ManifestError) {
	replacing := map[string][]compacted{} // by directory
	for _, path := range paths {
		directory, base := filepath.Split(path)
		if !strings.Contains(base, "s.otlp.") { // as a span ends; parsing each name would take longer than listing
			continue
		}
		if name, ours := ParseName(base); ours && !name.Partial && name.Span > 0 {
			replacing[directory] = append(replacing[directory], compacted{path, name})
		}
	}
	if len(replacing) == 0 {
		return nil, nil
	}
	closed := map[string][]compacted{} // by directory
	for _, path := range paths {
		directory, base := filepath.Split(path)
		if replacing[directory] == nil {
			continue
		}
		if name, ours := ParseName(base); ours && !name.Partial {
			closed[directory] = append(closed[directory], compacted{path, name})
		}
	}
	by = map[string]string{}
	for directory, files := range replacing {
		all := closed[directory]
		slices.SortFunc(all, func(a, b compacted) int { return a.name.Time.Compare(b.name.Time) })
		for _, f := range files {
			inputs := f.inputs(all)
			if len(inputs) == 0 {
				continue
			}
			content, err := read(f.path)
			names, parseErr := ParseManifest(filepath.Base(f.path), content)
			if err = cmp.Or(err, parseErr); err != nil {
				failed = append(failed, &ManifestError{f.path, inputs, err})
				continue
			}
			known := make(map[string]bool, len(inputs))
			for _, path := range inputs {
				known[path] = true
			}
			for _, name := range names {
				if known[directory+name] {
					by[directory+name] = f.path
				}
			}
		}
	}
	for _, e := range failed {
		e.Inputs = slices.DeleteFunc(e.Inputs, func(path string) bool { return by[path] != "" })
		if errors.Is(e.Err, fs.ErrNotExist) {
			e.Err = errors.New("is missing")
		}
	}
	failed = slices.DeleteFunc(failed, func(e *ManifestError) bool { return len(e.Inputs) == 0 })
	slices.SortFunc(failed, func(a, b *ManifestError) int { return cmp.Compare(a.File, b.File) })
	return by, failed
}

// inputs returns the files of the time of f that may be its inputs, of all closed files of its directory by time.
func (f *compacted) inputs(all []compacted) (paths []string) {
	at, _ := slices.BinarySearchFunc(all, f.name.Time, func(c compacted, t time.Time) int { return c.name.Time.Compare(t) })
	for ; at < len(all) && all[at].name.Time.Before(f.name.End()); at++ {
		if all[at].name.Span < f.name.Span {
			paths = append(paths, all[at].path)
		}
	}
	return paths
}

// ReadManifest reads the manifest of a file of the operating system.
func ReadManifest(path string) ([]byte, error) {
	directory, name := filepath.Split(path)
	return regularfile.Read(directory+ManifestName(name), MaxManifest)
}
