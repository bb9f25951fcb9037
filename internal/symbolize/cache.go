// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	tableSuffix     = ".symbols"
	partialSuffix   = ".partial" // of a table without what is missing
	temporaryPrefix = ".symbols-"
	// Files that are still temporary after this time are those of a process that was killed.
	temporaryAge = 24 * time.Hour
)

// limitCache removes the tables that were not used for longest while all are larger than allowed.
func (s *Store) limitCache() error {
	entries, err := os.ReadDir(s.options.Cache)
	if err != nil {
		return err
	}
	var tables []os.FileInfo
	var size int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		switch {
		case strings.HasPrefix(e.Name(), temporaryPrefix):
			if time.Since(info.ModTime()) > temporaryAge {
				_ = os.Remove(filepath.Join(s.options.Cache, e.Name()))
			}
		case strings.HasSuffix(e.Name(), tableSuffix):
			tables = append(tables, info)
			size += info.Size()
		}
	}
	slices.SortFunc(tables, func(a, b os.FileInfo) int { return cmp.Compare(a.ModTime().UnixNano(), b.ModTime().UnixNano()) })
	for i := 0; i < len(tables)-1 && size > s.options.CacheSize; i++ { // the newest one stays
		if err := os.Remove(filepath.Join(s.options.Cache, tables[i].Name())); err != nil {
			return err
		}
		size -= tables[i].Size()
		s.mu.Lock()
		s.forget(strings.TrimSuffix(strings.TrimSuffix(tables[i].Name(), tableSuffix), partialSuffix))
		s.mu.Unlock()
	}
	return nil
}
