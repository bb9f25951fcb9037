// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"strings"
)

// NewID returns 12 random hexadecimal digits.
func NewID() string {
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}

// idPrefix is followed by the random ID of a directory, in the name of an empty file. Names are committed at once.
const idPrefix = ".id-"

// DirectoryID returns the random ID of the directory, which it creates if there is none. Of several, the first counts.
func DirectoryID(dir Dir) (string, error) {
	for range 2 {
		names, err := dir.Names()
		if err != nil {
			return "", err
		}
		for _, name := range names {
			if id, is := idOf(name); is {
				return id, nil
			}
		}
		file, err := dir.Create(idPrefix + NewID())
		if err != nil {
			return "", err
		}
		if err := errors.Join(file.Close(), dir.Sync()); err != nil {
			return "", err
		}
	}
	return "", errors.New("the ID of the directory cannot be found")
}

func idOf(name string) (id string, is bool) {
	id, is = strings.CutPrefix(name, idPrefix)
	return id, is && len(id) == len(NewID())
}

// HasDirectoryID reports whether a directory has an ID: a Writer has opened it.
func HasDirectoryID(directory string) bool {
	entries, _ := os.ReadDir(directory) // one that cannot be listed has none that can be found
	return slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		_, is := idOf(entry.Name())
		return is
	})
}
